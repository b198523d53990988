require("spec.support.conformance").check "corrections"
