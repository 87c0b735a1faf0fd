"""Expressions, evaluated in a scope that has a bit of everything."""

from aftercommit.expressions import Expression, evaluate

AT = 1_700_000_000.25
SCOPE = {
    "inputs": {
        "order_id": "o-1",
        "amount": 12,
        "price": 9.5,
        "whole": 1.0,
        "big": 2**53 + 1,
        "gift": True,
        "nothing": None,
        "empty": [],
        "codes": [1, 2, 3],
        "items": [{"sku": "a", "size": 2}, {"sku": "b", "size": 3}],
        "odd name": {"in": "x", "back`tick": "y"},
        "nested": [[1, 2], [3]],
    },
    "var": {"payment": {"status": "ok"}},
}


def value_of(expression, seed="seed"):
    text = str(expression) if isinstance(expression, Expression) else f"{{% {expression} %}}"
    return evaluate(text, SCOPE, at=AT, seed=seed)
