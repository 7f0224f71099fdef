//! What only the inside can show: slots that use up their generations.
