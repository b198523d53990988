--- Undoes what a function has begun if it ends by an error: local _ <close> = on_error(function()
-- file:close() end).

return function(undo)
    return setmetatable({}, {__close = function(_, err)
        if err ~= nil then
            undo()
        end
    end})
end
