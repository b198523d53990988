-- HTTomo's pipeline of this name: neighboring projections are averaged.
return {
    {"dezinger", preset = "httomo"},
    {"flat_field", preset = "httomo"},
    {"center", preset = "httomo"},
    {"average", preset = "httomo"},
    "minus_log",
    {"fourier", filter = "shepp-logan"},
    {"rescale", preset = "httomo"},
}
