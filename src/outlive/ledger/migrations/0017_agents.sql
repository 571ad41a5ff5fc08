-- Tasks of the kind `agent`: what was asked for, and what the adapter read of each attempt.
-- `companion` is named already because a CHECK cannot be changed in place.
ALTER TABLE task ADD COLUMN kind TEXT NOT NULL DEFAULT 'command' CHECK (kind IN ('command', 'agent', 'companion'));
ALTER TABLE task ADD COLUMN agent TEXT CHECK (agent IS NULL OR json_valid(agent));

-- An attempt on another model claims other names than the first one.
ALTER TABLE attempt ADD COLUMN claims TEXT;
ALTER TABLE attempt ADD COLUMN agent TEXT CHECK (
    agent IS NULL OR json_extract(agent, '$.agent_class') IS NULL
    OR json_extract(agent, '$.agent_class') IN ('answered', 'refused', 'unavailable', 'stopped', 'asked', 'broken'));

-- The attempts of a client's session, so that a session is continued by one task at a time.
CREATE INDEX attempt_agent_session ON attempt (json_extract(agent, '$.session')) WHERE agent IS NOT NULL;

-- The attempts that found their model unavailable, so that the next ones try another one first.
CREATE INDEX attempt_unavailable ON attempt (settled_at)
WHERE agent IS NOT NULL AND json_extract(agent, '$.agent_class') = 'unavailable';
