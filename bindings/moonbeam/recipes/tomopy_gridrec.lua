-- HTTomo's pipeline of this name, for which TomoPy's gridrec is the direct Fourier method with
-- Parzen's window.
return {
    {"dezinger", preset = "httomo"},
    {"flat_field", preset = "httomo"},
    "minus_log",
    {"center", preset = "httomo"},
    {"fourier", filter = "parzen"},
    {"rescale", preset = "httomo"},
}
