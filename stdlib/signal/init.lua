-- stdlib/signal/init.lua: lt.signal: window functions, as PyTorch's torch.signal.

local catalogue = require "ltrain.core.catalogue"

return {
  windows = catalogue("ltrain.signal", "signal.windows", {
    windows = { "bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine",
      "general_hamming", "hamming", "hann", "kaiser", "nuttall" },
  }),
}
