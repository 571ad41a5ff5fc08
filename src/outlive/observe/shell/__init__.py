"""Shell command texts, split into simple commands."""
