"""Vector steps of the solver: one training row against a block of labels, one label per SIMD lane.

The weights of a block are stored feature-major, W[feature, lane], so that a feature of the row loads the weights of all
labels at once. The loops are written in LLVM's own vector types, because the loop vectoriser either unrolls such a
short inner loop into scalars or guards each of its runs with overlap checks; LLVM maps the vectors onto the registers
of the machine. Blocks have the widths below, each with its own step: a wide block costs less per label, a narrow one
wastes fewer lanes on missing labels.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

WIDTHS = (16, 32, 64)  # powers of two: a step of 48 lanes takes longer than one of 64
LANES = WIDTHS[-1]  # maximum labels of a block: 256 bytes of weights per feature, two thirds of the time of 32 and 32

_FLOAT = ir.FloatType()


def _step(width: int) -> Any:
    """Return the step for blocks of one width."""
    vector = ir.VectorType(_FLOAT, width)
    zero = ir.Constant(vector, [0.0] * width)

    @intrinsic
    def step(  # type: ignore[no-untyped-def]
        typingctx, indices, values, start, stop, W, alpha, row, signs, shift, norm, highest, lowest
    ):
        """Run the step on vectors of this width; see `dual_step`."""
        sig = types.void(indices, values, start, stop, W, alpha, row, signs, shift, norm, highest, lowest)

        def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> Any:
            def data(i: int) -> Any:
                return context.make_array(signature.args[i])(context, builder, args[i]).data

            def vector_at(pointer: Any, offset: Any) -> Any:
                at = builder.gep(pointer, [offset])
                return builder.bitcast(at, vector.as_pointer())

            def splat(scalar: Any) -> Any:
                one = builder.insert_element(ir.Constant(vector, ir.Undefined), scalar, ir.Constant(ir.IntType(32), 0))
                zeros = ir.Constant(ir.VectorType(ir.IntType(32), width), [0] * width)
                return builder.shuffle_vector(one, ir.Constant(vector, ir.Undefined), zeros)

            def load(pointer: Any) -> Any:
                return builder.load(pointer, align=4)

            def store(value: Any, pointer: Any) -> None:
                builder.store(value, pointer, align=4)

            intp = context.get_value_type(types.intp)
            index_p, value_p, W_p, alpha_p, signs_p = data(0), data(1), data(4), data(5), data(7)
            start_v = context.cast(builder, args[2], signature.args[2], types.intp)
            stop_v = context.cast(builder, args[3], signature.args[3], types.intp)
            row_v = context.cast(builder, args[6], signature.args[6], types.intp)
            stride = ir.Constant(intp, width)

            def builtin(name: str, n_arguments: int) -> Any:
                kind = ir.FunctionType(vector, [vector] * n_arguments)
                return cgutils.get_or_insert_function(  # type: ignore[no-untyped-call]
                    builder.module, kind, f"llvm.{name}.v{width}f32"
                )

            # fmuladd, not fma: machines without the instruction multiply and add instead of calling a library
            fma, larger, smaller = builtin("fmuladd", 3), builtin("maxnum", 2), builtin("minnum", 2)

            def weights_at(p: Any) -> Any:
                feature = builder.sext(builder.load(builder.gep(index_p, [p])), intp)
                return vector_at(W_p, builder.mul(feature, stride))

            total = cgutils.alloca_once_value(builder, zero)  # type: ignore[no-untyped-call]
            with cgutils.for_range_slice(builder, start_v, stop_v, ir.Constant(intp, 1), intp) as (p, _):
                value = splat(builder.load(builder.gep(value_p, [p])))
                builder.store(builder.call(fma, [value, load(weights_at(p)), builder.load(total)]), total)

            y = load(vector_at(signs_p, ir.Constant(intp, 0)))
            alpha_at = vector_at(alpha_p, builder.mul(row_v, stride))
            old = load(alpha_at)
            ones = ir.Constant(vector, [1.0] * width)
            gradient = builder.call(fma, [y, builder.load(total), builder.fneg(ones)])
            shift = load(vector_at(data(8), ir.Constant(intp, 0)))
            gradient = builder.call(fma, [shift, old, gradient])
            # at α = 0 only a negative gradient changes it; unused lanes (y = 0) never change
            free = builder.fcmp_ordered(">", old, zero)
            projected = builder.select(free, gradient, builder.call(smaller, [gradient, zero]))
            used = builder.fcmp_unordered("!=", y, zero)
            projected = builder.select(used, projected, zero)
            for i, extreme in ((10, larger), (11, smaller)):
                at = vector_at(data(i), ir.Constant(intp, 0))
                store(builder.call(extreme, [load(at), projected]), at)
            curvature = builder.fadd(splat(args[9]), shift)
            new = builder.call(larger, [builder.fsub(old, builder.fdiv(gradient, curvature)), zero])
            new = builder.select(used, new, old)
            store(new, alpha_at)
            delta = builder.fmul(y, builder.fsub(new, old))
            changed = builder.fcmp_unordered("!=", delta, zero)
            anything = builder.icmp_unsigned(
                "!=", builder.bitcast(changed, ir.IntType(width)), ir.Constant(ir.IntType(width), 0)
            )
            with (
                builder.if_then(anything),
                cgutils.for_range_slice(builder, start_v, stop_v, ir.Constant(intp, 1), intp) as (p, _),
            ):
                at = weights_at(p)
                value = splat(builder.load(builder.gep(value_p, [p])))
                store(builder.call(fma, [value, delta, load(at)]), at)
            return context.get_dummy_value()

        return sig, codegen

    return step


_step_16, _step_32, _step_64 = (_step(width) for width in WIDTHS)


@njit(nogil=True, inline="always")  # a call would count references to its arrays
def dual_step(  # type: ignore[no-untyped-def]
    indices, values, start, stop, W, alpha, row, signs, shift, norm, highest, lowest
) -> None:
    """Run one coordinate descent step on the dual variables of one row, for all lanes of a block.

    indices, values: the block's rows in CSR form; the row is [start, stop). W (features × width), alpha (rows × width),
    signs (width): +1 if the row is a positive of the lane, −1 if it is a negative, 0 in unused lanes; shift
    (width): 1/2C of each label; norm: x·x.
    With s = x·W the projected gradient is (Hsieh et al. 2008, L2-loss): G = y s − 1 + shift α, clipped at α = 0;
    α ← max(0, α − G / (norm + shift)); W ← W + y Δα x. highest and lowest (width) collect the extremes of the gradient.
    """
    if len(signs) == 64:
        _step_64(indices, values, start, stop, W, alpha, row, signs, shift, norm, highest, lowest)
    elif len(signs) == 32:
        _step_32(indices, values, start, stop, W, alpha, row, signs, shift, norm, highest, lowest)
    else:
        _step_16(indices, values, start, stop, W, alpha, row, signs, shift, norm, highest, lowest)
