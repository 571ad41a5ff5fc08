-- A task of the kind `agent` has its request in `task.agent`, and the result of each attempt in `attempt.agent`.
-- The kind `companion` is allowed already, because a CHECK cannot be changed in place.
ALTER TABLE task ADD COLUMN kind TEXT NOT NULL DEFAULT 'command' CHECK (kind IN ('command', 'agent', 'companion'));
ALTER TABLE task ADD COLUMN agent TEXT CHECK (agent IS NULL OR json_valid(agent));

-- An attempt on another model may have other claims than the first attempt.
ALTER TABLE attempt ADD COLUMN claims TEXT;
ALTER TABLE attempt ADD COLUMN agent TEXT CHECK (
    agent IS NULL OR json_extract(agent, '$.agent_class') IS NULL
    OR json_extract(agent, '$.agent_class') IN ('answered', 'refused', 'unavailable', 'stopped', 'asked', 'broken'));

-- This index finds the attempts of a client's session, so that only one task at a time continues the session.
CREATE INDEX attempt_agent_session ON attempt (json_extract(agent, '$.session')) WHERE agent IS NOT NULL;

-- This index finds the attempts whose model was unavailable, so that the next attempts try another model first.
CREATE INDEX attempt_unavailable ON attempt (settled_at)
WHERE agent IS NOT NULL AND json_extract(agent, '$.agent_class') = 'unavailable';
