-- HTTomo's pipeline of this name: axis by phase correlation, stripes by Titarenko's method, and
-- slices of fewer pixels.
return {
    {"flat_field", preset = "httomo"},
    {"stripes_titarenko", preset = "httomo"},
    {"center", method = "phase_correlation"},
    "minus_log",
    {"fbp", preset = "httomo"},
    {"resample", factor = 0.5, preset = "httomo"},
    {"rescale", preset = "httomo"},
}
