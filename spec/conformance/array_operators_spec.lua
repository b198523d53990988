require("spec.support.conformance").check "array"
