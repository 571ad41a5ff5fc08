"""Rules: databases, and what migrates them."""

from __future__ import annotations

from outlive.observe.dialects import changes_mongo, changes_redis, changes_sql, has_sql
from outlive.observe.rules import READS, TAKES, has_operands, is_called, program, rule

DATABASES = (
    program(
        "psql mysql mariadb pgcli mycli cockroach duckdb usql",
        rule("", "", "psql -l =>", when="-l --list -V"),
        rule("", "path:-o,--output", "psql -o a -c 'select 1' => path:/w/a", when="-o --output", also=True),
        rule("", "database:-d,--dbname|first|tool", "psql shop -f a.sql => database:shop", when="-f --file"),
        rule(
            "",
            "database:-d,--dbname,-D,--database|first|tool",
            "psql -d shop -c 'delete from a' => database:shop",
            "psql shop < a.sql => database:shop",
            "psql shop -c 'select 1' =>",
            "psql shop -c \"select 1 from a where b = 'drop it; delete'\" =>",
            "mysql -e \"select 'it\\\\'s'; drop table a; select ''\" => database:mysql",
            "mysql -e 'DROP TABLE a' => database:mysql",
            "echo 'drop table a' | psql postgres://u:p@h/db => database:h",
            asks=changes_sql,
        ),
        rule("", "", "psql -c 'select 1' =>", "psql shop => unknown:psql", asks=has_sql),
        takes=(
            "-c -d -h -p -U -f -u -e -D -P -v -o --command --dbname --host --port --username --file --user --execute "
            "--database --output"
        ),
    ),
    program(
        "clickhouse-client clickhouse-local",
        rule(
            "",
            "database:-d,--database|-h,--host|tool",
            "clickhouse-client -q 'drop table a' => database:clickhouse-client",
            "clickhouse-client -h c --query 'insert into a values (1)' => database:c",
            asks=changes_sql,
        ),
        rule("", "", "clickhouse-client -q 'select 1' =>", asks=has_sql),
        takes="-q -d -h -u --query --database --host --port --user --password --format",
    ),
    program(
        "sqlite3 sqlite",
        rule(
            "",
            "database:file",
            "sqlite3 a.db 'delete from a' => database:/w/a.db",
            "sqlite3 a.db < a.sql => database:/w/a.db",
            "sqlite3 a.db .schema =>",
            "sqlite3 a.db '.backup b' => database:/w/a.db",
            asks=changes_sql,
        ),
        rule("", "", "sqlite3 a.db 'select 1' =>", "sqlite3 a.db => unknown:sqlite3", asks=has_sql),
        takes="-cmd -separator -init",
        clusters=False,
    ),
    program(
        "redis-cli valkey-cli",
        rule(
            "",
            "database:-h|=redis",
            "redis-cli flushall => database:redis",
            "redis-cli -h c DEL a => database:c",
            "redis-cli get a =>",
            asks=changes_redis,
        ),
        otherwise=READS,
        takes="-h -p -n -a -u -r -i --pass --user --pattern --count",
    ),
    program(
        "mongosh mongo",
        rule("", "database:first|=mongo", "mongosh shop --eval 'db.a.drop()' => database:shop", asks=changes_mongo),
        rule("", "", "mongosh --eval 'db.a.find()' =>", when="--eval"),
        takes="--eval --host --port -u -p --username --password",
    ),
    program(
        "createdb dropdb createuser dropuser pg_restore mysqladmin mongorestore mongoimport vacuumdb reindexdb initdb",
        rule("", "", "pg_restore -l a =>", when="-l --list"),
        rule(
            "ping status extended-status processlist variables version",
            "",
            "mysqladmin -u root ping =>",
            asks=is_called("mysqladmin"),
        ),
        rule("", "path:-f", "pg_restore -f a.sql a => path:/w/a.sql", when="-f"),
        rule(
            "",
            "database:-d,--dbname,--db|last|tool",
            "createdb shop => database:shop",
            "pg_restore -d shop a => database:shop",
        ),
        takes="-d -h -p -u -U -O -T -E -f -j --dbname --db --host --port --username",
    ),
    program(
        "pg_dump pg_dumpall mysqldump mariadb-dump mongodump mongoexport pg_isready pg_basebackup",
        rule(
            "",
            "path:-f,-r,-o,-D,--file,--result-file,--out",
            "pg_dump -f a shop => path:/w/a",
            when="-f -r -o -D --file --result-file --out",
        ),
        otherwise=READS,
        takes="-f -r -o -D -h -p -U -u -d -t -n --file --result-file --out --host --port",
    ),
    program(
        "alembic flyway dbmate goose sqitch liquibase knex typeorm sequelize sequelize-cli",
        rule(
            "current history heads branches show check info validate status",
            "",
            "alembic current =>",
            "dbmate status =>",
        ),
        rule("revision new create init generate make migrate:make", "path:here", "alembic revision -m x => path:/w"),
        rule("", "database:tool", "alembic upgrade head => database:alembic", asks=has_operands, tree=TAKES),
        takes="-c -x -m -n",
    ),
    program(
        "prisma",
        rule("validate version migrate_status migrate_diff studio", "", "prisma validate =>"),
        rule("generate format init", "path:here", "prisma generate => path:/w"),
        rule("migrate db", "database:tool", "prisma migrate deploy => database:prisma", tree=TAKES),
    ),
    program(
        "rails rake bin/rails ./bin/rails bin/rake ./bin/rake",
        rule(
            "db:migrate db:create db:drop db:setup db:seed db:reset db:rollback db:schema:load db:prepare",
            "database:=rails",
            "rails db:migrate => database:rails",
            "bin/rails db:seed => database:rails",
            tree=TAKES,
        ),
        rule("routes about stats notes db:version db:migrate:status", "", "rails routes =>"),
        rule("generate g destroy d new", "path:here", "rails g model a => path:/w"),
    ),
    program(
        "manage.py django-admin",
        rule(
            "migrate flush loaddata createsuperuser sqlflush dbshell",
            "database:=django",
            "./manage.py migrate => database:django",
            "python manage.py migrate => database:django",
            unless="--plan --check",
            tree=TAKES,
        ),
        rule(
            "showmigrations check sqlmigrate diffsettings inspectdb dumpdata help version migrate",
            "",
            "./manage.py check =>",
        ),
        rule(
            "makemigrations startapp startproject collectstatic makemessages compilemessages",
            "path:here",
            "./manage.py makemigrations => path:/w",
            unless="--dry-run --check",
        ),
        takes="--settings --database",
    ),
)
