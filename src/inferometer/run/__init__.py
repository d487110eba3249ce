"""One plan, one record: what carries a plan out, on a live server or in virtual time, and evaluates what was recorded."""
