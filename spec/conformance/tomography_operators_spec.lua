require("spec.support.conformance").check "tomography"
