require("spec.support.conformance").check "axis"
