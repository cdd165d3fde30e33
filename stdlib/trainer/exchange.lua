--- stdlib/trainer/exchange.lua: which exchange of the loop's own this rank is in: what the others
--- are told of it while they wait.
local c = require "ltrain.c"

--- From here on it is `what`; nil: none, but the hook of before.
return function(state, what)
  c.dist.set_hook(what or state.hook or "")
end
