require("spec.support.conformance").check "filter"
