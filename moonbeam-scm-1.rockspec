-- The module for a stock Lua 5.4: `luarocks --lua-version 5.4 make`, after scripts/setup.
package = "moonbeam"
version = "scm-1"
source = {url = "git+file://."}
description = {
    summary = "GPU imaging with exact memory accounts: tomography, convolution, deconvolution",
    license = "MIT",
}
dependencies = {"lua >= 5.4, < 5.5"}
build = {
    type = "command",
    build_command = "scripts/build",
    install_command = "scripts/install_module '$(LUADIR)' '$(LIBDIR)'",
}
