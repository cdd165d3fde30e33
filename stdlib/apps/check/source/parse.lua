--- stdlib/apps/check/source/parse.lua: a syntax tree of a Lua source that Lua has accepted.
--
-- Each node has `kind` and `line`; a `name` has `var`, the local variable that it is (nil: a
-- global): { name =, line =, value = what it was declared with, assigned = whether it changes }.
-- Expressions: name, string, number, constant, function, table, index, call, binary, unary.
-- Statements: local, assign, call, do, while, repeat, if, for, return, jump.
local tokens_of = require "ltrain.core.tokens".of_file

local BINARY <const> = { -- operator -> left and right priority, as in Lua's manual
  ["or"] = { 1, 1 }, ["and"] = { 2, 2 }, ["<"] = { 3, 3 }, [">"] = { 3, 3 }, ["<="] = { 3, 3 },
  [">="] = { 3, 3 }, ["~="] = { 3, 3 }, ["=="] = { 3, 3 }, ["|"] = { 4, 4 }, ["~"] = { 5, 5 },
  ["&"] = { 6, 6 }, ["<<"] = { 7, 7 }, [">>"] = { 7, 7 }, [".."] = { 9, 8 }, ["+"] = { 10, 10 },
  ["-"] = { 10, 10 }, ["*"] = { 11, 11 }, ["/"] = { 11, 11 }, ["//"] = { 11, 11 },
  ["%"] = { 11, 11 }, ["^"] = { 14, 13 },
}
local UNARY <const> = { ["not"] = true, ["-"] = true, ["#"] = true, ["~"] = true }
local UNARY_PRIORITY <const> = 12
local ENDS <const> = { ["end"] = true, ["else"] = true, ["elseif"] = true, ["until"] = true,
                       [""] = true }
local CONSTANTS <const> = { ["nil"] = true, ["true"] = true, ["false"] = true, ["..."] = true }

-- Reading.

local function peek(p, ahead)
  local token = p.tokens[p.at + (ahead or 0)]
  return token and token.text or "", token and token.kind or "end"
end

local function line_of(p) return (p.tokens[p.at] or p.last).line end

local function take(p)
  local token = p.tokens[p.at]
  p.at = p.at + 1
  return token
end

-- Takes the token if it is this one; strings are none.
local function skip(p, text)
  local found, kind = peek(p)
  if found ~= text or kind == "string" then return false end
  p.at = p.at + 1
  return true
end

local function expect(p, text)
  if not skip(p, text) then error(("line %d: %s expected"):format(line_of(p), text), 0) end
end

-- Scopes.

local function declare(p, name, line, value)
  local var = { name = name, line = line, value = value, assigned = false }
  p.scope.vars[name] = var
  p.vars[#p.vars + 1] = var
  return var
end

local function find(p, name)
  local scope = p.scope
  while scope do
    if scope.vars[name] then return scope.vars[name] end
    scope = scope.outer
  end
end

local function open(p) p.scope = { vars = {}, outer = p.scope } end
local function close(p) p.scope = p.scope.outer end

-- Expressions.

local expression, block

local function list(p)
  local values = { expression(p) }
  while skip(p, ",") do values[#values + 1] = expression(p) end
  return values
end

local function text_of(token)
  local text = token.text
  if text:sub(1, 1) ~= "[" then return text:sub(2, -2) end
  return (text:gsub("^%[=*%[\n?", ""):gsub("%]=*%]$", ""))
end

local function parse_table(p)
  local node = { kind = "table", line = line_of(p), items = {} }
  expect(p, "{")
  while not skip(p, "}") do
    local item = { kind = "item", line = line_of(p) }
    local _, kind = peek(p)
    if kind == "name" and peek(p, 1) == "=" then
      item.key = { kind = "string", value = take(p).text, line = item.line }
      expect(p, "=")
    elseif kind ~= "string" and skip(p, "[") then
      item.key = expression(p)
      expect(p, "]")
      expect(p, "=")
    end
    item.value = expression(p)
    node.items[#node.items + 1] = item
    if not skip(p, ",") then skip(p, ";") end
  end
  return node
end

-- From the parameters on.
local function parse_function(p, line, has_self)
  local node = { kind = "function", line = line, params = {} }
  open(p)
  if has_self then node.params[1] = declare(p, "self", line) end
  expect(p, "(")
  while not skip(p, ")") do
    local token = take(p)
    if token.text ~= "..." then
      node.params[#node.params + 1] = declare(p, token.text, token.line)
    end
    skip(p, ",")
  end
  node.body = block(p)
  node.last_line = line_of(p)
  expect(p, "end")
  close(p)
  return node
end

local function arguments(p)
  local _, kind = peek(p)
  if kind == "string" then
    local token = take(p)
    return { { kind = "string", value = text_of(token), line = token.line } }
  elseif peek(p) == "{" then
    return { parse_table(p) }
  end
  expect(p, "(")
  if skip(p, ")") then return {} end
  local values = list(p)
  expect(p, ")")
  return values
end

local function primary(p)
  local token = take(p)
  if token.text == "(" and token.kind ~= "string" then
    local node = expression(p)
    expect(p, ")")
    return node
  end
  return { kind = "name", name = token.text, line = token.line, var = find(p, token.text) }
end

local function suffixed(p)
  local node = primary(p)
  while true do
    local text, kind = peek(p)
    local line = line_of(p)
    if kind == "string" or text == "(" or text == "{" then
      node = { kind = "call", fn = node, args = arguments(p), line = node.line, at = line }
    elseif text == "." then
      p.at = p.at + 1
      node = { kind = "index", object = node, line = line,
               key = { kind = "string", value = take(p).text, line = line } }
    elseif text == "[" then
      p.at = p.at + 1
      node = { kind = "index", object = node, key = expression(p), line = line }
      expect(p, "]")
    elseif text == ":" then
      p.at = p.at + 1
      local name = take(p).text
      node = { kind = "call", object = node, method = name, args = arguments(p), line = line,
               at = line }
    else
      return node
    end
  end
end

local function simple(p)
  local text, kind = peek(p)
  local line = line_of(p)
  if kind == "string" then
    return { kind = "string", value = text_of(take(p)), line = line }
  elseif kind == "number" then
    return { kind = "number", value = tonumber(take(p).text), line = line }
  elseif CONSTANTS[text] then
    return { kind = "constant", value = take(p).text, line = line }
  elseif text == "{" then
    return parse_table(p)
  elseif text == "function" then
    p.at = p.at + 1
    return parse_function(p, line)
  end
  return suffixed(p)
end

local function climb(p, limit)
  local node
  local text, kind = peek(p)
  if UNARY[text] and kind ~= "string" then
    local line = take(p).line
    node = { kind = "unary", operator = text, operand = climb(p, UNARY_PRIORITY), line = line }
  else
    node = simple(p)
  end
  while true do
    text, kind = peek(p)
    local priority = kind ~= "string" and BINARY[text]
    if not priority or priority[1] <= limit then return node end
    local line = take(p).line
    node = { kind = "binary", operator = text, left = node, right = climb(p, priority[2]),
             line = line }
  end
end

function expression(p) return climb(p, 0) end

-- Statements.

local function inner_block(p, last)
  open(p)
  local body = block(p)
  close(p)
  if last then expect(p, last) end
  return body
end

local function parse_if(p, line)
  local node = { kind = "if", line = line, clauses = {} }
  repeat
    local clause = { kind = "clause", line = line_of(p), condition = expression(p) }
    expect(p, "then")
    clause.body = inner_block(p)
    node.clauses[#node.clauses + 1] = clause
  until not skip(p, "elseif")
  if skip(p, "else") then node.otherwise = inner_block(p) end
  expect(p, "end")
  return node
end

local function parse_for(p, line)
  local node, names = { kind = "for", line = line }, {}
  repeat names[#names + 1] = take(p) until not skip(p, ",")
  if not skip(p, "=") then expect(p, "in") end
  node.values = list(p)
  expect(p, "do")
  open(p)
  for _, token in ipairs(names) do declare(p, token.text, token.line) end
  node.body = inner_block(p, "end")
  close(p)
  return node
end

local function parse_repeat(p, line)
  open(p)
  local node = { kind = "repeat", line = line, body = block(p) }
  expect(p, "until")
  node.condition = expression(p)
  close(p)
  return node
end

local function parse_local(p, line)
  if skip(p, "function") then
    local name = take(p)
    local var = declare(p, name.text, name.line)
    var.value = parse_function(p, line)
    return { kind = "local", line = line, vars = { var }, values = { var.value } }
  end
  local node, names = { kind = "local", line = line, vars = {}, values = {} }, {}
  repeat
    names[#names + 1] = take(p)
    if skip(p, "<") then
      names[#names].constant = true
      take(p)
      expect(p, ">")
    end
  until not skip(p, ",")
  if skip(p, "=") then node.values = list(p) end
  for i, token in ipairs(names) do
    node.vars[i] = declare(p, token.text, token.line, node.values[i])
  end
  return node
end

-- function a.b:c() ... end
local function parse_definition(p, line)
  local target, has_self = primary(p), false
  while peek(p) == "." or peek(p) == ":" do
    has_self = take(p).text == ":"
    target = { kind = "index", object = target, line = line,
               key = { kind = "string", value = take(p).text, line = line } }
  end
  if target.var then target.var.assigned = true end
  return { kind = "assign", line = line, targets = { target },
           values = { parse_function(p, line, has_self) } }
end

local function parse_assignment(p, line)
  local first = suffixed(p)
  if peek(p) ~= "=" and peek(p) ~= "," then return first end
  local node = { kind = "assign", line = line, targets = { first } }
  while skip(p, ",") do node.targets[#node.targets + 1] = suffixed(p) end
  expect(p, "=")
  for _, target in ipairs(node.targets) do
    if target.var then target.var.assigned = true end
  end
  node.values = list(p)
  return node
end

local function parse_return(p, line)
  local node = { kind = "return", line = line, values = {} }
  if not ENDS[peek(p)] and peek(p) ~= ";" then node.values = list(p) end
  skip(p, ";")
  return node
end

local STATEMENTS <const> = {
  ["if"] = parse_if, ["for"] = parse_for, ["repeat"] = parse_repeat, ["local"] = parse_local,
  ["function"] = parse_definition, ["return"] = parse_return,
  ["while"] = function(p, line)
    local node = { kind = "while", line = line, condition = expression(p) }
    expect(p, "do")
    node.body = inner_block(p, "end")
    return node
  end,
  ["do"] = function(p, line) return { kind = "do", line = line, body = inner_block(p, "end") } end,
  ["break"] = function(_, line) return { kind = "jump", line = line } end,
  ["goto"] = function(p, line)
    take(p)
    return { kind = "jump", line = line }
  end,
  ["::"] = function(p, line)
    take(p)
    expect(p, "::")
    return { kind = "label", line = line }
  end,
}

function block(p)
  local node = { kind = "block", line = line_of(p), statements = {} }
  while true do
    while skip(p, ";") do end -- luacheck: ignore
    local text, kind = peek(p)
    if kind == "end" or kind == "keyword" and ENDS[text] then return node end
    local line, special = line_of(p), kind ~= "string" and kind ~= "name" and STATEMENTS[text]
    if special then p.at = p.at + 1 end
    node.statements[#node.statements + 1] = (special or parse_assignment)(p, line)
  end
end

--- The tree of a source, a block, and the list of all its local variables.
return function(text)
  local tokens = tokens_of(text)
  local p = { tokens = tokens, at = 1, vars = {}, scope = { vars = {} },
              last = tokens[#tokens] or { line = 1 } }
  return block(p), p.vars
end
