-- HTTomo's pipeline of this name: as deg360_distortion_FBP3d_tomobar, with phase retrieval instead
-- of lens and logarithm. Give what the filter needs:
-- --set paganin.energy=53000 --set paganin.distance=1
return {
    {"flat_field", preset = "httomo"},
    "half_acquisition",
    {"center", method = "overlap"},
    {"paganin", preset = "httomo"},
    {"stripes_sorting", preset = "httomo"},
    {"fbp", preset = "httomo"},
    {"rescale", preset = "httomo"},
}
