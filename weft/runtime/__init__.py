"""Running programs: arena, thread team, code cache, and the engine that front ends call."""
