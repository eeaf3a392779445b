"""Vector steps of the solver: one training row against a block of labels, one label a SIMD lane.

The weights of a block lie feature-major, W[feature, lane], so that a feature of the row loads the weights of all
labels at once. The loops are written in LLVM's own vector types, because the loop vectoriser either unrolls so short
an inner loop into scalars or guards each of its runs with overlap checks; LLVM maps the vectors onto whatever
registers the machine has.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

LANES = 32  # 128 bytes of weights, two cache lines a feature: as fast as 16 lanes, for twice the labels

_FLOAT = ir.FloatType()
_VECTOR = ir.VectorType(_FLOAT, LANES)
_ZERO = ir.Constant(_VECTOR, [0.0] * LANES)


@intrinsic
def dual_step(  # type: ignore[no-untyped-def]
    typingctx, indices, values, start, stop, W, alpha, row, signs, shift, curvature, highest, lowest
):
    """One coordinate descent step on the dual variables of one row, for all lanes of a block.

    indices, values: the block's rows in CSR form; the row is [start, stop). W (features × LANES), alpha (rows × LANES),
    signs (LANES): +1 where the row is a positive of the lane, −1 where it is a negative, 0 in unused lanes.
    With s = x·W the projected gradient is (Hsieh et al. 2008, L2-loss): G = y s − 1 + shift α, clipped at α = 0;
    α ← max(0, α − G / curvature); W ← W + y Δα x. highest and lowest (LANES) collect the extremes of the gradient.
    """
    sig = types.void(indices, values, start, stop, W, alpha, row, signs, shift, curvature, highest, lowest)

    def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> Any:
        def data(i: int) -> Any:
            return context.make_array(signature.args[i])(context, builder, args[i]).data

        def vector_at(pointer: Any, offset: Any) -> Any:
            at = builder.gep(pointer, [offset])
            return builder.bitcast(at, _VECTOR.as_pointer())

        def splat(scalar: Any) -> Any:
            one = builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), scalar, ir.Constant(ir.IntType(32), 0))
            zeros = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
            return builder.shuffle_vector(one, ir.Constant(_VECTOR, ir.Undefined), zeros)

        def load(pointer: Any) -> Any:
            return builder.load(pointer, align=4)

        def store(value: Any, pointer: Any) -> None:
            builder.store(value, pointer, align=4)

        intp = context.get_value_type(types.intp)
        index_p, value_p, W_p, alpha_p, signs_p = data(0), data(1), data(4), data(5), data(7)
        start_v = context.cast(builder, args[2], signature.args[2], types.intp)
        stop_v = context.cast(builder, args[3], signature.args[3], types.intp)
        row_v = context.cast(builder, args[6], signature.args[6], types.intp)
        lanes = ir.Constant(intp, LANES)

        def builtin(name: str, n_arguments: int) -> Any:
            kind = ir.FunctionType(_VECTOR, [_VECTOR] * n_arguments)
            return cgutils.get_or_insert_function(  # type: ignore[no-untyped-call]
                builder.module, kind, f"llvm.{name}.v{LANES}f32"
            )

        # fmuladd, not fma: machines without the instruction multiply and add instead of calling a library
        fma, larger, smaller = builtin("fmuladd", 3), builtin("maxnum", 2), builtin("minnum", 2)

        def weights_at(p: Any) -> Any:
            feature = builder.sext(builder.load(builder.gep(index_p, [p])), intp)
            return vector_at(W_p, builder.mul(feature, lanes))

        total = cgutils.alloca_once_value(builder, _ZERO)  # type: ignore[no-untyped-call]
        with cgutils.for_range_slice(builder, start_v, stop_v, ir.Constant(intp, 1), intp) as (p, _):
            value = splat(builder.load(builder.gep(value_p, [p])))
            builder.store(builder.call(fma, [value, load(weights_at(p)), builder.load(total)]), total)

        y = load(vector_at(signs_p, ir.Constant(intp, 0)))
        alpha_at = vector_at(alpha_p, builder.mul(row_v, lanes))
        old = load(alpha_at)
        ones = ir.Constant(_VECTOR, [1.0] * LANES)
        gradient = builder.call(fma, [y, builder.load(total), builder.fneg(ones)])
        gradient = builder.call(fma, [splat(args[8]), old, gradient])
        # at α = 0 only a negative gradient moves; unused lanes (y = 0) never do
        free = builder.fcmp_ordered(">", old, _ZERO)
        projected = builder.select(free, gradient, builder.call(smaller, [gradient, _ZERO]))
        used = builder.fcmp_unordered("!=", y, _ZERO)
        projected = builder.select(used, projected, _ZERO)
        for i, extreme in ((10, larger), (11, smaller)):
            at = vector_at(data(i), ir.Constant(intp, 0))
            store(builder.call(extreme, [load(at), projected]), at)
        new = builder.call(larger, [builder.fsub(old, builder.fdiv(gradient, splat(args[9]))), _ZERO])
        new = builder.select(used, new, old)
        store(new, alpha_at)
        delta = builder.fmul(y, builder.fsub(new, old))
        changed = builder.fcmp_unordered("!=", delta, _ZERO)
        anything = builder.icmp_unsigned(
            "!=", builder.bitcast(changed, ir.IntType(LANES)), ir.Constant(ir.IntType(LANES), 0)
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
