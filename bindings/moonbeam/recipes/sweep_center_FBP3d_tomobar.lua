-- HTTomo's pipeline of this name: run it with --sweep center.column=FIRST:LAST:STEP
return {
    {"flat_field", preset = "httomo"},
    "minus_log",
    {"center", preset = "httomo"},
    {"fbp", preset = "httomo"},
}
