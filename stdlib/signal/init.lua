-- stdlib/signal/init.lua: lt.signal: PyTorch's torch.signal, which is windows alone.

local catalogue = require "ltrain.core.catalogue"

return {
  windows = catalogue("ltrain.signal", "signal.windows", {
    windows = { "bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine",
      "general_hamming", "hamming", "hann", "kaiser", "nuttall" },
  }),
}
