require("spec.support.conformance").check "geometry"
