require("spec.support.conformance").check "statistics"
