-- spec/elastic/model_spec.lua: whatever the order in which requests of hosts reach the store, and
-- whatever fails between two of them: no two rounds at once, no round that never comes.
-- tags: half, slow, unsanitized
local JobRecords = require "ltrain.elastic.JobRecords"
local Rendezvous = require "ltrain.elastic.Rendezvous"
local explore = require "spec.elastic.exploration"
local rendezvous_state = require "ltrain.elastic.rendezvous_state"

local EXHAUSTIVE <const> = os.getenv "LT_EXHAUSTIVE" == "1"
local ALL <const> = "crash expiry failed leave done"

local function run(n, min, failures, events)
  local set <const> = {}
  for name in events:gmatch "%w+" do set[name] = true end
  return explore(n, failures, { min = min, max = n, max_restarts = 1, events = set })
end

-- Hosts, fewest of a round, failures, what happens besides joining (leave: and come back), and how
-- many states there are: all of them are visited. Those marked so only with --exhaustive.
local cases <const> = {
  { 1, 1, 2, ALL, 676 },
  { 2, 1, 1, ALL, 5509 },
  { 3, 2, 0, "done", 1759 },
  { 3, 2, 1, "failed leave", 9866, true },
  { 3, 1, 1, "crash", 13561, true },
  { 2, 2, 2, ALL, 46191, true },
  { 3, 2, 1, ALL, 194285, true },
  { 3, 2, 2, "failed leave", 81295, true },
  { 3, 2, 2, "expiry", 73115, true },
  { 3, 2, 2, "crash", 170247, true },
  { 3, 2, 2, ALL, 4745078, true }, -- 20 minutes, 6 GB
}

describe("the protocol of a rendezvous", function()
  for _, case in ipairs(cases) do
    local n <const>, min, failures, events, count, is_long = table.unpack(case, 1, 6)
    it(("keeps its promises for %d hosts, at least %d, with %d failures: %s"):format(n, min,
      failures, events), function()
      if is_long and not EXHAUSTIVE then return pending "with --exhaustive" end
      local states <const>, steps, wrong = run(n, min, failures, events)
      assert.is_nil(wrong)
      assert.equal(count, states)
      assert.is_true(steps > states)
    end)
  end
end)

-- A function of the protocol with a fault, while hosts are explored: what is found.
local function with(class, name, faulty, ...)
  local right <const> = class[name]
  class[name] = function(...) return faulty(right, ...) end
  local _, _, wrong = run(...)
  class[name] = right
  return wrong
end

describe("a faulty protocol", function()
  it("is found out that does not wait for the ranks of the last round", function()
    assert.matches("a round began while a host was in the last one", with(rendezvous_state, "next",
      function(next_of, doc, members, view)
        for _, host in pairs(view.hosts) do
          if doc.status == "waiting" then host.after = math.max(host.after, doc.number) end
        end
        return next_of(doc, members, view)
      end, 2, 1, 1, "failed"))
  end)

  it("is found out in which a leader overwrites what others have written", function()
    assert.is_string(with(JobRecords, "write", function(write, self, doc, version, members)
      if not version then return write(self, doc, version, members) end
      local _, current <const> = self.store:get(self:_key "round/state")
      return write(self, doc, current, members)
    end, 2, 1, 1, ALL))
  end)

  it("is found out in which a host forgets a round that was over before it joined it", function()
    assert.matches("nobody goes on", with(Rendezvous, "_member", function(member, self, doc)
      return doc.status == "running" and member(self, doc) or nil
    end, 2, 1, 1, "failed leave"))
  end)
end)
