-- spec/elastic/exploration.lua: explores the model of the rendezvous (model.lua): all states that
-- hosts and store can come to, whatever the order of requests and failures.
--
-- What makes hundreds of thousands of states few enough:
--
--   equal states   are those whose texts are equal (state_key.lua)
--   symmetry       hosts are alike: of the states that differ in nothing but which host is which
--                  one stands for all (C. N. Ip and D. L. Dill, Better verification through
--                  symmetry, 1996). They are put in the order of the numbers of their texts, in
--                  which each calls itself "=" and the others "#"; where these are equal every
--                  order is tried
--   real code      runs once for each pair of a host's state and the store's: what one host does
--                  depends on nothing else. For other combinations of the same pair, also with
--                  other hosts in the same places, the texts that it led to are used again
--
-- Texts have numbers, a state is a string of these, four bytes each. Where code has to run, the
-- state is made again from the nearest state on the way to it that is there: some of the last ones
-- are kept.
local model = require "spec.elastic.model"
local state_key = require "spec.elastic.state_key"

local LETTERS <const> = "ABCDEF"
local LAST <const> = 50000 -- states that are kept

-- Numbers of texts, and texts of numbers.
local function numbering()
  local known <const>, list = {}, {}
  return function(text)
    if not known[text] then
      list[#list + 1] = text
      known[text] = #list
    end
    return known[text]
  end, list
end

-- A table whose missing entries are made by `of`.
local function table_of(of)
  return setmetatable({}, { __index = function(self, key)
    local value <const> = of(key)
    self[key] = value
    return value
  end })
end

-- All orders of 1..n.
local function orders_of(n)
  local found <const> = {}
  local function extend(order, used)
    if #order == n then found[#found + 1] = { table.unpack(order) } end
    for k = 1, n do
      if not used[k] then
        order[#order + 1], used[k] = k, true
        extend(order, used)
        order[#order], used[k] = nil, nil
      end
    end
  end
  extend({}, {})
  return found
end

local Exploration <const> = {}
Exploration.__index = Exploration

-- A state in the exploration: `store`: the number of its text, `own`: those of its hosts in the
-- order of their letters, `left`: failures that may still happen.

local function new_exploration(n, options)
  local self <const> = setmetatable({ n = n, options = options, orders = orders_of(n) },
    Exploration)
  self.format = "<" .. ("I4"):rep(n + 1)
  self.number_of, self.texts = numbering()
  self.facts = {} -- by the number of a text: what model.facts says
  -- By the numbers of the store's text and of its own: what can happen to the host of letter A.
  self.steps = table_of(function() return {} end)
  -- The orders in which the host of a letter is the first.
  self.first_orders = table_of(function() return {} end)
  for number, order in ipairs(self.orders) do table.insert(self.first_orders[order[1]], number) end
  -- Nodes: numbers of states, by their keys; from which each was reached, by which step of the host
  -- of which letter; its hosts' places in the model.
  self.found, self.key, self.from, self.event, self.place = {}, {}, {}, {}, {}
  self.letter = {}
  self.state, self.lasts, self.last = setmetatable({}, { __mode = "v" }), {}, 0
  self.edges, self.settled = {}, {}
  -- The texts in which the host of each letter has the one of its place in the order.
  self.renamed = table_of(function(order)
    local names <const> = {}
    for k, old in ipairs(self.orders[order]) do
      names[LETTERS:sub(old, old)] = "\1" .. LETTERS:sub(k, k)
    end
    return table_of(function(number)
      local text <const> = self.texts[number]:gsub("\1(%u)", names)
      local new <const> = self.number_of(text)
      self.facts[new] = self.facts[number]
      return new
    end)
  end)
  -- The places of hosts that are put into an order, each list of them once.
  local lists <const> = {}
  self.placed = table_of(function(place)
    return table_of(function(order)
      local new <const> = {}
      for k, old in ipairs(self.orders[order]) do new[k] = place[old] end
      local key <const> = table.concat(new, " ")
      lists[key] = lists[key] or new
      return lists[key]
    end)
  end)
  -- A host's text and the store's as all hosts would read them.
  self.alike = table_of(function(k)
    return table_of(function(store)
      return table_of(function(own)
        return self.number_of((self.texts[own] .. "|" .. self.texts[store]):gsub("\1(%u)",
          function(letter) return letter == LETTERS:sub(k, k) and "=" or "#" end))
      end)
    end)
  end)
  return self
end

-- The order of the hosts that stands for all others.
function Exploration:_order(store, own)
  local alike <const>, best, best_key = {}, nil, nil
  for k = 1, self.n do alike[k] = self.alike[k][store][own[k]] end
  for number, order in ipairs(self.orders) do
    local is_sorted = true
    for k = 2, self.n do is_sorted = is_sorted and alike[order[k - 1]] <= alike[order[k]] end
    if is_sorted then
      local renamed <const>, numbers = self.renamed[number], {}
      for k = 1, self.n do numbers[k] = renamed[own[order[k]]] end
      local key <const> = self.format:pack(renamed[store], table.unpack(numbers))
      if not best or key < best_key then best, best_key = number, key end
    end
  end
  return best, best_key
end

-- The numbers of the texts of a state of the model, whose hosts `place` has in the order of their
-- letters: of the store, and of the hosts, or only of the one of letter `only`.
function Exploration:_read(state, place, only)
  local names <const>, own = {}, {}
  for k = 1, self.n do names[state.hosts[place[k]].id] = "\1" .. LETTERS:sub(k, k) end
  local shared <const>, texts = state_key.texts(state, only and place[only])
  local of_store <const>, of_hosts = model.facts(state)
  local function number(text, facts)
    local found <const> = self.number_of((text:gsub("\1(%l)", names)))
    self.facts[found] = facts or false
    return found
  end
  for k = only or 1, only or self.n do
    own[k] = number("host " .. texts[place[k]], of_hosts[place[k]])
  end
  return number(shared, of_store), own
end

-- The state of the model of a node.
function Exploration:_state(node)
  if self.state[node] then return self.state[node] end
  local from <const>, state = self.from[node], nil
  model.events(self.options, self:_state(from), self.place[from][self.letter[node]],
    function(new) state = new end, self.event[node].text)
  self:_keep(node, state)
  return state
end

-- Keeps the state of a node, and the last ones: those of the next nodes are made from them.
function Exploration:_keep(node, state)
  self.state[node] = state
  self.last = self.last % LAST + 1
  self.lasts[self.last] = state
end

-- Runs what can happen in a node to the host whose place is the first: fills `steps`, a list of
-- {text =, kind =, store =, own = numbers of texts after it, ended = letters of hosts that must not
-- be in the last round, others = nil, or by text those of other hosts after it}. `only`: one of
-- them alone, which was run before with others: it must come to the same.
function Exploration:_run(node, place, own, steps, only)
  local state <const> = self:_state(node)
  model.events(self.options, state, place[1], function(new, text, kind)
    local concerns_all <const> = model.concerns_all(state, new, place[1])
    local store <const>, after = self:_read(new, place, not concerns_all and 1 or nil)
    local one <const> = only or { text = text, kind = kind, store = store, own = after[1],
      ended = {}, others = concerns_all and {} or nil }
    assert(one.own == after[1] and one.store == store, "a step depends on more than the texts")
    if not only then steps[#steps + 1] = one end
    for other = 2, one.others and self.n or 0 do
      local known <const> = one.others[own[other]]
      assert(not known or known == after[other], "a step depends on more than the texts")
      one.others[own[other]] = after[other]
    end
    local ended <const> = model.must_have_ended(state, new)
    for letter = 1, self.n do one.ended[letter] = ended[place[letter]] end
    local fault <const> = model.violation(self.options, state, new)
    if fault then self:_fail(fault, node, place[1], one) end
  end, only and only.text)
end

-- What can happen to the host of letter A, with what becomes of the others.
function Exploration:_steps_of(node, place, store, own)
  local of_store <const> = self.steps[store]
  if not of_store[own[1]] then
    of_store[own[1]] = {}
    self:_run(node, place, own, of_store[own[1]])
  end
  for _, step in ipairs(of_store[own[1]]) do
    for other = 2, step.others and self.n or 0 do
      if not step.others[own[other]] then
        self:_run(node, place, own, of_store[own[1]], step)
      end
    end
  end
  return of_store[own[1]]
end

-- Of the orders of the hosts in which the one of a letter is the first, the one that stands for all
-- of them, and the number of the store's text in it.
function Exploration:_order_from(letter, store, own)
  local best, best_store, best_own
  for _, order in ipairs(self.first_orders[letter]) do
    local renamed <const> = self.renamed[order]
    local of_store <const>, of_own = renamed[store], renamed[own]
    if not best or of_store < best_store or of_store == best_store and of_own < best_own then
      best, best_store, best_own = order, of_store, of_own
    end
  end
  return best, best_store
end

-- The node of a state.
function Exploration:_node(left, store, own, place, from, event, letter)
  local order <const>, key = self:_order(store, own)
  local full <const> = string.char(left) .. key
  if self.found[full] then return self.found[full] end
  local node <const> = #self.key + 1
  self.found[full], self.key[node], self.place[node] = node, full, self.placed[place][order]
  self.from[node], self.event[node], self.letter[node] = from, event, letter
  return node
end

-- Whether all hosts that live agree: they run one round together, or the job is closed.
local function is_settled(options, doc, hosts)
  local alive = 0
  for _, host in ipairs(hosts) do
    if host.lives then alive = alive + 1 end
    if host.turns then return false end
  end
  if alive == 0 or alive < options.min then return true end
  if not doc then return false end
  for _, host in ipairs(hosts) do
    if doc.status == "closed" and host.lives then
      return false
    elseif host.phase == "joining" and doc.hosts < options.max then
      return false
    elseif host.phase == "running" and (doc.status ~= "running" or not host.is_current) then
      return false
    end
  end
  return doc.status == "closed" or doc.status == "running" and doc.hosts <= alive
end

-- Whether a step of the first host comes sooner or later.
local function must_happen(step, hosts)
  if step.kind ~= "done" then return step.kind == nil end
  for _, host in ipairs(hosts) do
    if host.is_done and host.is_current then return hosts[1].is_current end
  end
  return false
end

-- Adds the states that follow a node's.
function Exploration:_expand(node)
  local key <const>, hosts = self.key[node], {}
  local left <const>, numbers = key:byte(), { self.format:unpack(key, 2) }
  local store <const>, own = numbers[1], table.move(numbers, 2, self.n + 1, 1, {})
  for k = 1, self.n do hosts[k] = self.facts[own[k]] end
  self.settled[node] = is_settled(self.options, self.facts[store], hosts)
  for k = 1, self.n do
    local order <const>, of_store = self:_order_from(k, store, own[k])
    local view <const> = { node = node, letter = k, own = {}, hosts = {},
                           place = self.placed[self.place[node]][order] }
    for i, old in ipairs(self.orders[order]) do
      view.own[i], view.hosts[i] = self.renamed[order][own[old]], hosts[old]
    end
    for _, step in ipairs(self:_steps_of(node, view.place, of_store, view.own)) do
      if step.kind ~= "failure" or left > 0 then
        self:_follow(view, step, step.kind == "failure" and left - 1 or left)
      end
    end
  end
end

-- Adds the state to which a step leads. `view`: the node, its hosts in the order in which the one
-- that takes the step is the first, and the letter of that one.
function Exploration:_follow(view, step, left)
  local node <const>, hosts, after = view.node, view.hosts, { step.own }
  for k, own in ipairs(view.own) do
    local host <const> = hosts[k]
    if k > 1 then after[k] = step.others and step.others[own] or own end
    if step.ended[k] and host.phase == "running" and host.is_current and not host.is_done then
      self:_fail("a round began while a host was in the last one", node, view.place[1], step)
    end
  end
  local next_node <const> = self:_node(left, step.store, after, view.place, node, step,
    view.letter)
  self.count = self.count + 1
  if must_happen(step, hosts) then
    self.edges[#self.edges + 1], self.edges[#self.edges + 2] = node, next_node
  end
end

local function text_of(place, step) return ("abcdef"):sub(place, place) .. " " .. step.text end

-- Remembers the first thing that is wrong, with the steps that lead to it: those to a node, and
-- (optional) one of the host at a place.
function Exploration:_fail(fault, node, place, step)
  local way <const> = { step and text_of(place, step) }
  while self.from[node] do
    local from <const> = self.from[node]
    table.insert(way, 1, text_of(self.place[from][self.letter[node]], self.event[node]))
    node = from
  end
  self.wrong = self.wrong or fault .. ":\n  " .. table.concat(way, "\n  ")
end

-- The states from which hosts come together when nothing fails any more: those that are settled,
-- and those from which a step leads to such a one that comes sooner or later. As there are finitely
-- many states, hosts come together from all of them however their steps are ordered, unless a step
-- that is possible again and again is never taken.
function Exploration:_come_together()
  local edges <const>, before, heads, reached, list = self.edges, {}, {}, {}, {}
  for k = 1, #edges, 2 do -- a list of the edges to each node
    before[k], heads[edges[k + 1]] = heads[edges[k + 1]], k
  end
  for node in ipairs(self.key) do
    if self.settled[node] then reached[node], list[#list + 1] = true, node end
  end
  while #list > 0 do
    local edge = heads[table.remove(list)]
    while edge do
      local from <const> = edges[edge]
      if not reached[from] then reached[from], list[#list + 1] = true, from end
      edge = before[edge]
    end
  end
  for node in ipairs(self.key) do
    if not reached[node] then return self:_fail("nobody goes on", node) end
  end
end

--- Explores all states of n hosts with at most `failures` failures. Returns how many there are, how
--- many steps are possible in them, and nil or what is wrong with the way to one, which ends it.
---@param options table of model.begin
return function(n, failures, options)
  local self <const> = new_exploration(n, options)
  local first <const>, place = model.begin(n, options), {}
  for k = 1, n do place[k] = k end
  local store <const>, own = self:_read(first, place)
  self:_node(failures, store, own, place)
  self.count, self.first, self.state[1] = 0, first, first
  local node = 1
  while node <= #self.key and not self.wrong do
    self:_expand(node)
    node = node + 1
  end
  if not self.wrong then self:_come_together() end
  return #self.key, self.count, self.wrong
end
