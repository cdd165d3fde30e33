-- spec/elastic/model_spec.lua: whatever the order in which requests of hosts reach the store, and
-- whatever fails between two of them: no two rounds at once, no round that never comes.
-- tags: slow, unsanitized
local model = require "spec.elastic.model"

local EXHAUSTIVE <const> = os.getenv "LT_EXHAUSTIVE" == "1"
local SEED <const> = math.tointeger(tonumber(os.getenv "LT_TEST_SEED")) or 1

-- Numbers from 1 to n, the same ones for a seed.
local function random_of(seed)
  local state = seed
  return function(n)
    state = (state * 6364136223846793005 + 1442695040888963407)
    return (state >> 33) % n + 1
  end
end

local function set(names)
  local found <const> = {}
  for name in names:gmatch "%w+" do found[name] = true end
  return found
end

-- { hosts, fewest, failures, events, states of an everyday run }; with --exhaustive all states.
local cases <const> = {
  { 1, 1, 2, "crash expiry failed leave done", 300 },
  { 2, 2, 1, "failed leave", 400 },
  { 2, 1, 1, "crash done", 400 },
  { 2, 1, 1, "expiry failed", 400 },
  { 3, 2, 0, "done", 400 },
  { 3, 2, 2, "crash", 400 },
  { 3, 2, 2, "expiry", 400 },
  { 3, 2, 2, "failed leave", 400 },
  { 3, 1, 2, "crash expiry failed leave done", 400 },
}

describe("the protocol of a rendezvous", function()
  for _, case in ipairs(cases) do
    local n <const>, min, failures, events, some = table.unpack(case)
    it(("keeps its promises for %d hosts, at least %d, with %d failures: %s"):format(n, min,
      failures, events), function()
      local options <const> = { min = min, max = n, max_restarts = 1, failures = failures,
                                events = set(events) }
      local states, steps, wrong = model.explore(n, options, not EXHAUSTIVE and some or nil,
        not EXHAUSTIVE and random_of(SEED) or nil)
      assert.is_nil(wrong)
      assert.is_true(states > 10 and steps >= states - 1)
    end)
  end

  it("would be found wrong if a round did not wait for the ranks of the last one", function()
    local rendezvous_state <const> = require "ltrain.elastic.rendezvous_state"
    local next_of <const> = rendezvous_state.next
    function rendezvous_state.next(doc, members, view)
      for _, host in pairs(view.hosts) do
        if doc.status == "waiting" then host.after = math.max(host.after, doc.number) end
      end
      return next_of(doc, members, view)
    end
    local _, _, wrong = model.explore(2, { min = 1, max = 2, max_restarts = 1, failures = 1,
      events = set "failed" }, 3000)
    rendezvous_state.next = next_of
    assert.matches("began while host", wrong)
  end)
end)
