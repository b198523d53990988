-- HTTomo's pipeline of this name: outliers, correction, stripes, axis, logarithm, filtered
-- back-projection, 8 bits. The axis is found after the stripes are gone, because they mislead it.
return {
    {"dezinger", preset = "httomo"},
    {"flat_field", preset = "httomo"},
    {"stripes_all", preset = "httomo"},
    {"center", preset = "httomo"},
    "minus_log",
    {"fbp", preset = "httomo"},
    {"rescale", preset = "httomo"},
}
