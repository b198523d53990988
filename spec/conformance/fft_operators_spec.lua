require("spec.support.conformance").check "fft"
