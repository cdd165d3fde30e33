-- stdlib/fft/init.lua: lt.fft, Fourier transforms: PyTorch's torch.fft.

local catalogue = require "ltrain.core.catalogue"

return catalogue("ltrain.fft", "fft", {
  stft = { "istft", "stft" },
  transforms = { "fft", "ifft", "rfft", "irfft", "hfft", "ihfft" },
  planes = { "fft2", "ifft2", "rfft2", "irfft2", "hfft2", "ihfft2", "fftn", "ifftn", "rfftn",
    "irfftn", "hfftn", "ihfftn" },
  windows = { "hamming_window", "hann_window" },
  frequencies = { "fftfreq", "rfftfreq", "fftshift", "ifftshift" },
})
