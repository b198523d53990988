-- HTTomo's pipeline of this name: as FBP3d_tomobar, by a direct Fourier method.
return {
    {"dezinger", preset = "httomo"},
    {"flat_field", preset = "httomo"},
    {"stripes_all", preset = "httomo"},
    {"center", preset = "httomo"},
    "minus_log",
    {"fourier", filter = "shepp-logan"},
    {"rescale", preset = "httomo"},
}
