-- HTTomo's pipeline of this name: as tomopy_gridrec, without outliers and with stripes removed.
return {
    {"flat_field", preset = "httomo"},
    {"stripes_all", preset = "httomo"},
    {"center", preset = "httomo"},
    "minus_log",
    {"fourier", filter = "parzen"},
    {"rescale", preset = "httomo"},
}
