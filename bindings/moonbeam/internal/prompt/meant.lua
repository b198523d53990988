--- What is typed at the prompt and is not Lua, but clearly meant: "?tomo.fbp" and "help tomo.fbp"
-- explain, "help" and "?" list the topics, "exit" and "quit" end the program. Variables of these
-- names are variables.

local meant = {}

--- The source that ends the prompt.
meant.EXIT = "return -- exit"

local LEAVE = {exit = true, quit = true}

-- Whether the user has given this name a value of their own.
local function is_taken(env, name)
    local value = env[name]
    return value ~= nil and value ~= rawget(env, "help")
end

--- The Lua source for a text in an environment, or nil if the text means itself.
local function source_of(text, env)
    local line = text:match("^%s*(.-)%s*;?%s*$")
    local leave = line:match("^(%a+)%s*%(%s*%)$") or line
    if LEAVE[leave] and not is_taken(env, leave) then
        return meant.EXIT
    end
    local subject = line:match("^%?%s*(.*)$")
    if not subject and not is_taken(env, "help") then
        subject = line == "help" and "" or line:match("^help%s+([%a_][%w_.: ]*)$")
    end
    if not subject then
        return nil
    end
    subject = subject:gsub("^['\"]", ""):gsub("['\"]$", "")
    return ("mb.help(%s)"):format(subject ~= "" and ("%q"):format(subject) or "")
end

return setmetatable(meant, {__call = function(_, text, env)
    return source_of(text, env)
end})
