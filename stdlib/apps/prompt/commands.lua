--- stdlib/apps/prompt/commands.lua: the table of the prompt's `:commands`.
local c = require "ltrain.c"

local commands = {}

commands.help = {
  args = "[NAME]",
  doc = "what the reference has on a class, a function, an option's owner, a hook or a command",
  run = function(session, topic)
    local help = require "ltrain.apps.prompt.help"
    if topic == "" then return session:say(help.commands(session)) end
    local text, wrong = help.on(session, topic)
    if text then session:say(text) else session:complain(wrong) end
  end,
}

commands.time = {
  args = "EXPRESSION", doc = "evaluate an entry, and print how long it took",
  run = function(session, text)
    if text == "" then return session:complain(":time: which expression?") end
    local began = c.runtime.clock()
    local ok = session:evaluate(text)
    c.runtime.synchronize() -- what devices have still to do
    local seconds = c.runtime.clock() - began
    if not ok then return end
    session:say(seconds < 1e-3 and ("%.1f us"):format(seconds * 1e6)
      or seconds < 1 and ("%.2f ms"):format(seconds * 1e3) or ("%.2f s"):format(seconds))
  end,
}

commands.mem = {
  args = "[DEVICE]",
  doc = "the tensors that are alive, the largest first, with the line of the script that made them",
  run = function(session, device)
    local memory = require "ltrain.apps.prompt.memory"
    c.runtime.collect_fully()
    local devices = device ~= "" and { device } or c.runtime.devices_in_use()
    for _, name in ipairs(devices) do
      local text = memory.text(name, session.env, session.last)
      session:say(text or name .. ": no tensors")
    end
  end,
}

commands.load = {
  args = "FILE", doc = "run a script; its globals stay, and what it returns is `_`",
  run = function(session, path)
    if path == "" then return session:complain(":load: which file?") end
    local chunk, wrong = session.host.load(path)
    if not chunk then return session:complain(":load: " .. wrong) end
    local _ <close> = require "ltrain.trainer.setup.overrides".again()
    local file = { path = path }
    session.files[#session.files + 1] = file
    local results = table.pack(session:try(chunk))
    file.result = results[2]
    session:print(results)
  end,
}

commands.reload = {
  doc = "run the script's files again for their code: functions and classes are replaced; models, "
    .. "their weights, optimizers and all other values stay",
  run = function(session)
    local reload = require "ltrain.apps.prompt.reload"
    local counts = reload.run(session.host.globals or session.env, session.files)
    if counts.files == 0 then return session:complain(":reload: no file was loaded") end
    session:say(("reloaded %d file%s"):format(counts.files, counts.files == 1 and "" or "s"))
  end,
}

commands.bt = {
  doc = "all frames of the last error, those of the library too",
  run = function(session)
    session:say(session.failure and session.failure.stack or "no error yet")
  end,
}

commands.quit = {
  doc = "leave the prompt, as Ctrl-D does", run = function(session) session:leave() end,
}

return commands
