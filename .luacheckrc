-- For luacheck. Lua 5.4 everywhere, busted names in specs; no module sets or reads a global.
std = "lua54"
max_line_length = 100
max_string_line_length = 160
max_comment_line_length = 100
exclude_files = { "build", "docs/reference" } -- the reference is generated

-- Only the prompt offers the module as a global.
files["bindings/moonbeam/internal/repl.lua"] = { globals = { "mb" } }
-- Specs match whole messages.
files["spec"] = { std = "lua54+busted", max_line_length = 140 }
-- These run in other programs: Premake (Lua 5.1 or later), and busted.
files["premake5.lua"] = {
    std = "min",
    globals = { "path", "premake" },
    read_globals = {
        "_ACTION", "_OPTIONS", "_PREMAKE_VERSION", "buildcommands", "buildmessage", "buildoptions",
        "buildoutputs", "configuration", "configurations", "files", "filter", "flags",
        "includedirs", "kind", "language", "libdirs", "linkoptions", "links", "location",
        "newoption", "objdir", "project", "solution", "symbols", "targetdir", "targetextension",
        "targetname", "targetprefix", "workspace",
        os = { other_fields = true },
    },
}
-- Written by programs.
files["docs/reference"] = { max_line_length = false, max_comment_line_length = false }
files["spec/fixtures"] = { max_line_length = false }
