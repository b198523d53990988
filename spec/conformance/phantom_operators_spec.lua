require("spec.support.conformance").check "phantom"
