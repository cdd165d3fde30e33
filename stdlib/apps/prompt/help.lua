--- stdlib/apps/prompt/help.lua: `:help name`, from the same comments and tables as docs/reference.
local c = require "ltrain.c"
local members = require "ltrain.apps.prompt.members"
local doc_comments = require "ltrain.apps.prompt.doc_comments"
local errors = require "ltrain.core.errors"
local exports = require "ltrain.core.exports"
local hooks = require "ltrain.core.hooks"
local operation_text = require "ltrain.apps.prompt.operation_text"
local option_text = require "ltrain.apps.prompt.option_text"
local reference_section = require "ltrain.apps.prompt.reference_section"
local tensor_page = require "ltrain.apps.prompt.tensor_page"
local wrap_text = require "ltrain.core.wrap_text"

local help = {}

-- A line of code, indented as far as it fits into the columns.
local function code_line(line)
  local indent, rest = line:match "^(%s*)(.*)$"
  return wrap_text(rest, "  " .. indent .. "    ", "  " .. indent)
end

-- Paragraphs of a file's head: code as it is, each line behind its own indent.
local function paragraphs(text)
  local parts, open, is_code = {}, {}, false
  local function close()
    if #open > 0 then parts[#parts + 1] = wrap_text(table.concat(open, " "), "") end
    open = {}
  end
  for line in (text .. "\n"):gmatch "(.-)\n" do
    if line:find "^```" or is_code or line:find "^%s" or line == "" then
      close()
      if line:find "^```" then
        is_code = not is_code
      else
        parts[#parts + 1] = is_code and code_line(line) or line
      end
    else
      if line:find "^[-*|] " then close() end -- of a list or a table
      open[#open + 1] = line
    end
  end
  close()
  return table.concat(parts, "\n")
end

--- An option or argument in a line: type, default, what it does.
function help.option_line(row)
  if row.name then -- an operation's
    return ("%s; %s"):format(operation_text.type(row), operation_text.default(row))
  end
  local default = option_text.default(row)
  return ("%s%s%s"):format(option_text.type(row), row.required and "; required"
    or default and "; default " .. default or "", row.doc and ": " .. row.doc or "")
end

local function add_options(lines, rows, order, title)
  if not rows then return end
  lines[#lines + 1] = ("\n%s:"):format(title or "options")
  for _, name in ipairs(doc_comments.order(order, rows)) do
    lines[#lines + 1] = ("  %s"):format(name)
    lines[#lines + 1] = wrap_text(help.option_line(rows[name]), "      ")
  end
end

local function add_methods(lines, list)
  if #list == 0 then return end
  lines[#lines + 1] = "\nfunctions:"
  for _, method in ipairs(list) do
    lines[#lines + 1] = wrap_text(method.call, "    ", "  ")
    if method.doc ~= "" then lines[#lines + 1] = wrap_text(method.doc, "      ") end
    for _, param in ipairs(method.params) do
      lines[#lines + 1] = wrap_text(param, "        ", "      ")
    end
  end
end

-- The page of a class or a file of functions.
local function page(said, title)
  local lines = { title }
  if said.call then lines[1] = "lt." .. said.call:gsub("^lt%.", "") end
  local function add(text, indent)
    if text and text ~= "" then lines[#lines + 1] = wrap_text(text, indent or "  ") end
  end
  add(said.about)
  add(said.said)
  for _, text in ipairs(said.arguments) do add(text, "    ") end
  for _, text in ipairs(said.called_with) do add("called with " .. text) end
  if said.base then add(("a subclass of %s"):format(said.base)) end
  if said.more ~= "" then lines[#lines + 1] = "\n" .. paragraphs(said.more) end
  add_options(lines, said.options, said.order)
  if said.forward_said then lines[#lines + 1] = "\n" .. wrap_text(said.forward_said, "") end
  add_options(lines, said.call_options, said.order, "options of a call")
  add_methods(lines, said.methods)
  return table.concat(lines, "\n")
end

local function of_operation(row)
  local lines = { wrap_text(operation_text.call(row), "    ", ""), wrap_text(row.doc, "  ") }
  local dtype = operation_text.dtype(row)
  if dtype and dtype ~= "" then lines[#lines + 1] = "  dtype of the result: " .. dtype end
  lines[#lines + 1] = operation_text.notes(row) and wrap_text(operation_text.notes(row), "  ")
  if row.in_place then lines[#lines + 1] = ("  in place: x:%s_"):format(row.name) end
  lines[#lines + 1] = "  gradient: " .. (row.differentiable and "yes"
    or row.composite and "by parts" or "no")
  for i, argument in ipairs(operation_text.arguments(row)) do
    if i == 1 then lines[#lines + 1] = "\narguments:" end
    lines[#lines + 1] = wrap_text(help.option_line(argument), (" "):rep(19), ("  %-16s "):format(
      argument.name))
  end
  return table.concat(lines, "\n")
end

-- What docs/reference/tensor.md says of a function of lt, or a method or field of tensors.
local function of_tensor_page(name, of_lt)
  local row = tensor_page.row(name, of_lt)
  return row and wrap_text(row.cell, "") .. "\n" .. wrap_text(row.text, "  ")
end

local function of_hook(name)
  for _, row in ipairs(hooks.rows) do
    if row.name == name then
      return ("%s(%s)\n%s"):format(row.name, row.args, wrap_text(row.doc, "  "))
    end
  end
end

-- One function of a file.
local function of_entry(file, name, title, fn, upvalue)
  for _, entry in ipairs(file.functions) do
    if entry.doc and (entry.name == name or not entry.name) then
      local lines = { ("%s(%s)"):format(title, entry.arguments or "") }
      if entry.doc ~= "" then lines[#lines + 1] = wrap_text(entry.doc, "  ") end
      for _, param in ipairs(entry.params) do
        lines[#lines + 1] = wrap_text(param, "      ", "    ")
      end
      add_options(lines, fn and doc_comments.options_of(fn, upvalue), file.text)
      return table.concat(lines, "\n")
    end
  end
end

-- Files whose functions are methods of every module, of the Trainer.
local MODULE <const> = { "ltrain.nn.Module", "ltrain.nn.module_hooks", "ltrain.nn.module_trainer",
  "ltrain.nn.module_state" }

-- The chunk that a class, or a table of functions, stands in: what its own functions say.
local function chunk_of(value, upvalue)
  local class = rawget(value, "__name")
  for _, fn in next, value do
    local name = type(fn) == "function" and doc_comments.name_of(fn, upvalue)
    if name and (not class or name:match "[^.]+$" == class) then return name end
  end
end

-- The file of a class, by its place below lt, or by its functions.
local function file_of(value, title, upvalue)
  local place = exports[title:match "^[^.]+$" or ""]
  local chunk = place and place:match "^[^:]+" or "ltrain." .. title
  local file = doc_comments.of(chunk)
  if file then return file, chunk end
  chunk = type(value) == "table" and chunk_of(value, upvalue)
  return chunk and doc_comments.of(chunk), chunk
end

local function of_class(value, title, upvalue)
  local file, chunk = file_of(value, title, upvalue)
  if not file then return nil end
  local name = title:find(".", 1, true) and title or "lt." .. title
  local said = reference_section.of(file, name, value, upvalue, function(init)
    return doc_comments.of(doc_comments.name_of(init, upvalue))
  end)
  if chunk == "ltrain.trainer.Trainer" then
    said.options = require "ltrain.trainer.setup.options"
    said.order = doc_comments.of("ltrain.trainer.setup.options").text
  elseif chunk == MODULE[1] then
    for i = 2, #MODULE do
      local more = reference_section.methods(doc_comments.of(MODULE[i]), "net", "lt.Module")
      table.move(more, 1, #more, #said.methods + 1, said.methods)
    end
  end
  return page(said, "lt." .. title)
end

-- A function: one of the library from its file, another by where it stands.
local function of_function(value, title, name, upvalue)
  local chunk = doc_comments.name_of(value, upvalue)
  local file = chunk and doc_comments.of(chunk)
  local text = file and of_entry(file, name, "lt." .. title, value, upvalue)
  if text then return text end
  if chunk then return nil end
  local place = c.runtime.function_line(value)
  return place and ("%s: a function of %s"):format(title, place)
end

local function name_of(keys)
  local words = {}
  for i, key in ipairs(keys) do words[i] = tostring(key) end
  return table.concat(words, ".")
end

local function has_name(value) return type(value) == "table" and rawget(value, "__name") end

-- What can be said of the value that the keys lead to.
local function of_value(value, keys, upvalue)
  local title, last = name_of(keys), keys[#keys]
  if has_name(value) then return of_class(value, title, upvalue) end
  if type(value) == "function" then
    local row = not c.runtime.function_line(value) and members.op(last)
    if row then return of_operation(row) end
    local text = of_function(value, title, last, upvalue)
    if text then return text end
  end
  local row = (keys[1] == "Tensor" or #keys == 1) and members.op(last)
  if row then return of_operation(row) end
  if type(value) == "table" then
    local class = getmetatable(value)
    if has_name(class) then return of_value(class, { class.__name }, upvalue) end
    local file = #keys <= 2 and file_of(value, title, upvalue)
    if file then
      local said = { about = file.about, more = file.more, arguments = {}, called_with = {},
                     methods = reference_section.methods(file, last, last) }
      return page(said, "lt." .. title)
    end
  end
end

-- The keys of "lt.nn.Linear", "x:relu".
local function keys_of(text)
  local keys = {}
  for key in text:gmatch "[^.:]+" do keys[#keys + 1] = key end
  return keys
end

-- The library: the names of its namespaces.
local function overview()
  local list = {}
  for name in next, exports do list[#list + 1] = name end
  table.sort(list)
  return "lt\n  the library: operations (:help relu), and\n"
    .. wrap_text(table.concat(list, ", "), "    ")
end

local function look_up(env, keys, is_method, upvalue)
  local lt = env.lt
  local own = members.resolve(env, keys)
  if own ~= nil and own ~= lt then
    if keys[1] == "lt" then table.remove(keys, 1) end
    return of_value(own, keys, upvalue)
  end
  if keys[1] == "lt" then table.remove(keys, 1) end
  if #keys == 0 then return overview() end
  local value = members.resolve(lt, keys)
  if value == nil and keys[1] == "Tensor" then value = c.runtime.methods[keys[2]] end
  if value == nil and (is_method or #keys == 1) then
    keys = { keys[#keys] }
    value = c.runtime.methods[keys[1]]
  end
  if value ~= nil or keys[1] == "Tensor" then return of_value(value, keys, upvalue) end
end

-- A name that is in one of the library's namespaces: "DataLoader".
local function in_rooms(name, env, upvalue)
  local lt = env.lt
  for namespace in next, exports do
    local value = lt[namespace]
    if members.is_namespace(value) and members.fields(value)[name] then
      return look_up(env, { "lt", namespace, name }, false, upvalue)
    end
  end
end

-- The topics that a mistyped name may have meant.
local function topics(keys)
  local lt, list = require "ltrain", {}
  local namespace = #keys > 1 and members.resolve(lt, table.move(keys, 1, #keys - 1, 1, {}))
  for name in next, members.fields(namespace or lt) do
    if type(name) == "string" then list[#list + 1] = name end
  end
  for _, row in ipairs(hooks.rows) do list[#list + 1] = row.name end
  table.sort(list)
  return list
end

-- An option of a class, or of the class of an object: "Trainer.max_epochs".
local function of_option(keys, env, upvalue)
  local name = keys[#keys]
  local owner = #keys > 1 and members.resolve(env, { table.unpack(keys, 1, #keys - 1) })
    or #keys == 2 and members.resolve(env.lt, { keys[1] })
  local class = type(owner) == "table" and (has_name(owner) and owner or getmetatable(owner))
  local rows = has_name(class) and members.options(class, class.__name, upvalue)
  return rows and rows[name] and ("%s: an option of %s\n%s"):format(name, class.__name,
    wrap_text(help.option_line(rows[name]), "  "))
end

-- What is there without a text of its own.
local function of_any(keys, env)
  local value = members.resolve(env, keys)
  if value == nil then value = members.resolve(env.lt, keys) end
  local place = type(value) == "function" and c.runtime.function_line(value)
  if place then return ("%s: a function of %s"):format(name_of(keys), place) end
  return value ~= nil and ("%s: %s"):format(name_of(keys), errors.show(value)) or nil
end

--- The text on a topic; nil and a message without one.
function help.on(session, topic)
  local command = topic:match "^:([%a_]+)$"
  if command and session.commands[command] then return help.command(session, command) end
  local keys = keys_of(topic)
  if #keys == 0 then return help.commands(session) end
  local env, upvalue = setmetatable({ lt = require "ltrain" }, { __index = session.env }),
    session.host.upvalue
  local name = keys[#keys]
  local on_tensors = #keys == 1 or #keys == 2 and (keys[1] == "lt" or keys[1] == "Tensor"
    or members.is_tensor(members.resolve(env, { keys[1] })) or topic:find ":")
  local text = look_up(env, { table.unpack(keys) }, topic:find(":", 1, true) ~= nil, upvalue)
    or on_tensors and of_tensor_page(name, keys[1] == "lt") or of_hook(name)
    or of_option(keys, env, upvalue) or #keys == 1 and in_rooms(name, env, upvalue)
    or of_any(keys, env)
  if text then return text end
  return nil, (":help: nothing is known of '%s'%s"):format(topic,
    errors.did_you_mean(keys[#keys], topics(keys)))
end

--- How a function or class of the library is called; nil when that is not known.
function help.signature(session, keys)
  local value, upvalue = members.resolve(session.env, keys), session.host.upvalue
  local last = keys[#keys]
  local row = type(value) == "function" and not c.runtime.function_line(value) and members.op(last)
  if row then return operation_text.call(row) end
  if has_name(value) and value.init then
    local file = doc_comments.of(doc_comments.name_of(value.init, upvalue) or "")
    return file and reference_section.of(file, name_of(keys), value, upvalue,
      function() return file end).call
  elseif type(value) == "function" then
    local file = doc_comments.of(doc_comments.name_of(value, upvalue) or "")
    local text = file and of_entry(file, last, name_of(keys))
    return text and text:match "^[^\n]*"
  end
end

--- A line on each command of the prompt.
function help.commands(session)
  local lines, list, widest = { "entries are Lua; `_` is the last value, `lt` the library" }, {}, 0
  for name, command in next, session.commands do
    if not command.alias then
      list[#list + 1] = name
      widest = math.max(widest, #name + #(command.args or "") + 1)
    end
  end
  table.sort(list)
  for _, name in ipairs(list) do
    local command = session.commands[name]
    local call = name .. (command.args and " " .. command.args or "")
    lines[#lines + 1] = wrap_text(command.doc, (" "):rep(widest + 3), (":%s%s  "):format(call,
      (" "):rep(widest - #call)))
  end
  return table.concat(lines, "\n")
end

function help.command(session, name)
  local command = session.commands[name]
  return (":%s%s\n%s"):format(name, command.args and " " .. command.args or "",
    wrap_text(command.doc, "  "))
end

return help
