# spec/files/numpy_files.py: makes the files that spec/files/numpy_spec.lua reads.
#
#   python3 spec/files/numpy_files.py        (from the root of the tree; numpy 1.24 or newer)
import numpy as np

FOLDER = "spec/files/"
a = np.arange(24).reshape(2, 3, 4)
np.savez_compressed(FOLDER + "arrays.npz", f4=a.astype("<f4"), f8=a.astype("<f8"),
                    f2=a.astype("<f2"), i8=a.astype("<i8"), i4=a.astype("<i4"),
                    i2=a.astype("<i2"), u2=a.astype("<u2"), u1=a.astype("|u1"),
                    i1=a.astype("|i1"), b1=a % 2 == 1, big=a.astype(">f4"),
                    fortran=np.asfortranarray(a.astype("<i4")), scalar=np.float64(3),
                    empty=np.zeros((0, 3)), one=np.arange(3))
np.savez(FOLDER + "stored.npz", np.arange(4.0), named=np.ones((2, 2)))
np.save(FOLDER + "structured.npy", np.zeros(2, dtype=[("a", "<f4"), ("b", "<i8")]))
np.save(FOLDER + "objects.npy", np.array([{}], dtype=object), allow_pickle=True)
np.save(FOLDER + "complex.npy", np.zeros(2, dtype=complex))
np.save(FOLDER + "text.npy", np.array(["ab"]))
