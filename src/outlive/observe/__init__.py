"""What a task touched: seen, compared, declared."""
