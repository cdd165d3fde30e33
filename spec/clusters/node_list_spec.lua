-- spec/clusters/node_list_spec.lua: SLURM's lists of nodes.
local node_list = require "ltrain.clusters.node_list"

describe("a list of nodes", function()
  local CASES <const> = {
    { "alpha,beta", "alpha beta" },
    { "alpha", "alpha" },
    { "alpha beta gamma", "alpha beta gamma" },
    { "host[5-9,1]", "host5 host6 host7 host8 host9 host1" },
    { "1.2.3.[089, 100-103]", "1.2.3.089 1.2.3.100 1.2.3.101 1.2.3.102 1.2.3.103" },
    { "alpha[3,1], beta", "alpha3 alpha1 beta" },
    { "n[08-11]", "n08 n09 n10 n11" },
    { "r[1-2]n[3-4].x,login", "r1n3.x r1n4.x r2n3.x r2n4.x login" },
    { "", "" },
  }
  for _, case in ipairs(CASES) do
    it(("'%s' stands for %s"):format(case[1], case[2]), function()
      assert.equal(case[2], table.concat(node_list.expand(case[1]), " "))
    end)
  end

  for _, text in ipairs { "a[", "a]", "a[1", "a[]", "a[x]", "a[3-1]", "a[1-]", "a[[1]]",
    "a[0-99999999]", "a[0-999]b[0-999]" } do
    it(("'%s' is none"):format(text), function()
      local names, message = node_list.expand(text)
      assert.is_nil(names)
      assert.equal(("not a list of nodes: '%s'"):format(text), message)
    end)
  end

  it("has a first name", function()
    assert.equal("gpu01", node_list.first("gpu[01-99],x"))
  end)
end)
