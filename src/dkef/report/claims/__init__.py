"""The paper's checkable statements: for each its place, the rule by which it is judged, and the code of that rule."""
