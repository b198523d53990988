require("spec.support.conformance").check "phase"
