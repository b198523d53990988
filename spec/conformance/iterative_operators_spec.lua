require("spec.support.conformance").check "iterative"
