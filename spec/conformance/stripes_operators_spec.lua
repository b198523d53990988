require("spec.support.conformance").check "stripes"
