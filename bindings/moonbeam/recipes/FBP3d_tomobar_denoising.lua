-- HTTomo's pipeline of this name: as FBP3d_tomobar, with total variation after the
-- reconstruction.
return {
    {"dezinger", preset = "httomo"},
    {"flat_field", preset = "httomo"},
    {"stripes_all", preset = "httomo"},
    {"center", preset = "httomo"},
    "minus_log",
    {"fbp", preset = "httomo"},
    {"total_variation", preset = "httomo"},
    {"rescale", preset = "httomo"},
}
