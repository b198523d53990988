require("spec.support.conformance").check "denoising"
