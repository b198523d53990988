require("spec.support.conformance").check "deconvolution"
