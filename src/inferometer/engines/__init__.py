"""How each engine spells a request, a stream event and its usage."""
