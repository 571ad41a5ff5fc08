"""Commands that are known to be servers or watchers."""

from __future__ import annotations

import pytest

from outlive.domain.tasks.command import from_shell_text
from outlive.domain.tasks.server_command import runs_until_ended


@pytest.mark.parametrize(
    "text",
    [
        *("vite", "npx vite --port 3000", "./node_modules/.bin/vite preview", "npm run dev", "npm start", "pnpm dev"),
        *("cd web && yarn dev", "npm run test:watch", "next dev -p 3001", "tsc --watch", "tailwindcss -i a --watch"),
        *("python -m http.server 8000", "python manage.py runserver", "uvicorn app:app --reload", "flask run --debug"),
        *("bundle exec rails s", "php artisan serve", "docker compose up", "kubectl port-forward pod/x 80:80"),
        *("NODE_ENV=dev nodemon server.js", "esbuild a.js --serve", "cargo watch -x test", "make serve", "hugo server"),
        *("(sleep 1; npm run 'dev')", "env A=b npx http-server"),
    ],
)
def test_server_is_known_by_its_text(text: str) -> None:
    """A line of shell is known, and also the same words without a shell."""
    assert runs_until_ended(from_shell_text(text).argv)
    if not set("&;()='") & set(text):
        assert runs_until_ended(text.split())


@pytest.mark.parametrize(
    "text",
    [
        *(
            "sleep 600",
            "vite build",
            "npx vite build --mode dev",
            "npm test",
            "npm run build",
            "npm ci",
            "make",
            "make test",
        ),
        *("docker compose up -d", "docker build .", "echo vite", "git log --grep serve", "pytest -k dev", "true"),
        *("vite --help", "tsc", "tsc --watch=false", "cargo build", "python script.py", "uvicorn --version", ""),
    ],
)
def test_command_is_no_server_when_its_text_says_nothing(text: str) -> None:
    """Builds, tests and every unknown program are not taken for servers."""
    assert not runs_until_ended(("/bin/sh", "-c", text))
