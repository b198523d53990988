-- HTTomo's pipeline of this name: the lens is corrected, and a whole turn with the axis near an
-- edge gives slices of twice the field of view. Give the coefficients of the lens:
-- --set distortion.file=coefficients.txt
return {
    {"flat_field", preset = "httomo"},
    {"distortion", preset = "httomo"},
    "half_acquisition",
    {"stripes_sorting", preset = "httomo"},
    {"center", method = "overlap"},
    "minus_log",
    {"fbp", preset = "httomo"},
    {"rescale", preset = "httomo"},
}
