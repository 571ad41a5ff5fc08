"""Rules: what builds, tests and rolls out by rules of its own. It always writes where it runs, and may do more."""

from __future__ import annotations

from outlive.observe.rules import TAKES, has_operands, names_goal, program, rule

BUILDS = (
    program(
        "mvn mvnw ./mvnw",
        rule("", "", "mvn -v =>", when="-v"),
        rule("dependency:tree dependency:list help:effective-pom help:describe", "", "./mvnw dependency:tree =>"),
        rule(
            "",
            "remote:=maven path:here unknown:tool",
            "mvn -B clean deploy => remote:maven path:/w unknown:mvn",
            asks=names_goal("deploy", "release:perform"),
        ),
        rule("", "path:here unknown:tool", "mvn -q -DskipTests package => path:/w unknown:mvn", asks=has_operands),
        takes="-f -pl -P -s -T --file --projects",
        clusters=False,
    ),
    program(
        "gradle gradlew ./gradlew",
        rule("tasks projects properties dependencies dependencyInsight help", "", "./gradlew tasks --all =>"),
        rule("", "", "gradle -m build =>", when="-m --dry-run -v --status"),
        rule(
            "",
            "remote:=maven path:here unknown:tool",
            "gradle publish => remote:maven path:/w unknown:gradle",
            asks=names_goal("publish", "uploadArchives"),
        ),
        rule("", "path:here unknown:tool", "./gradlew clean test => path:/w unknown:./gradlew", asks=has_operands),
        takes="-p -b -x --project-dir",
        directory="-p --project-dir",
        clusters=False,
    ),
    program(
        "sbt ant bazel bazelisk",
        rule("query info version help dependencyTree projects", "", "bazel query //... =>", "sbt projects =>"),
        rule("", "", "ant -p =>", when="-p -projecthelp -version"),
        rule("", "path:here unknown:tool", "bazel build //... => path:/w unknown:bazel", asks=has_operands),
    ),
    program(
        "dotnet",
        rule("", "", "dotnet --list-sdks =>", when="--list-sdks --list-runtimes --info"),
        rule("list tool_list workload_list sln_list nuget_list package_search", "", "dotnet list package =>"),
        rule("format", "", "dotnet format --verify-no-changes =>", when="--verify-no-changes", tree=TAKES),
        rule("nuget_push", "remote:=nuget", "dotnet nuget push a.nupkg => remote:nuget"),
        rule("ef_database", "database:tool", "dotnet ef database update => database:dotnet", tree=TAKES),
        rule("ef_migrations_list", "", "dotnet ef migrations list =>"),
        rule(
            "add remove restore tool workload package",
            "packages:tool",
            "dotnet add Api package a => packages:dotnet",
            "dotnet tool install -g a => packages:dotnet",
        ),
        rule(
            "new build publish pack clean sln format ef",
            "path:-o,--output|here",
            "dotnet new webapi -o Api => path:/w/Api",
            "dotnet build -c Release => path:/w",
            "dotnet test => unknown:dotnet",
        ),
        takes="-o -c -f -r -v --output --configuration --framework",
    ),
    program(
        "xcodebuild",
        rule("", "", "xcodebuild -list =>", when="-list -showsdks -version -showBuildSettings -showdestinations"),
        rule("", "path:-derivedDataPath|here", "xcodebuild -scheme App build => path:/w"),
        takes="-scheme -project -workspace -configuration -destination -sdk -derivedDataPath",
        clusters=False,
    ),
    program(
        "flutter dart",
        rule("doctor devices emulators analyze pub_deps pub_outdated info", "", "flutter doctor =>"),
        rule("format fix", "", "dart format --output=none . =>", when="--output --dry-run"),
        rule("pub_publish", "remote:=pub.dev", "dart pub publish => remote:pub.dev", unless="--dry-run -n"),
        rule("pub upgrade", "packages:tool", "flutter pub get => packages:flutter"),
        rule("create build clean format fix gen-l10n compile", "path:here", "flutter build apk => path:/w"),
    ),
    program(
        "vite next nuxt nuxi astro ng nx gatsby remix react-scripts",
        rule(
            "build generate g export add init new",
            "path:--outDir|here unknown:tool",
            "vite build => path:/w unknown:vite",
        ),
        takes="--outDir -c --config",
    ),
    program(
        "webpack rollup tsup parcel",
        rule("serve watch", "unknown:tool", "webpack serve => unknown:webpack"),
        rule(
            "", "path:-o,-d,--out-dir,--output-path|here unknown:tool", "webpack -o out => path:/w/out unknown:webpack"
        ),
        takes="-c -o -d --config --mode --out-dir --output-path --format",
    ),
    program(
        "esbuild tailwindcss sass postcss swc openapi-typescript",
        rule(
            "",
            "path:-o,-d,--output,--outfile,--outdir,--out-dir,--out-file",
            "esbuild a.ts --bundle --outfile=b.js => path:/w/b.js",
            "tailwindcss -i a.css -o b.css => path:/w/b.css",
            when="-o -d --output --outfile --outdir --out-dir --out-file",
            tree=TAKES,
        ),
        takes="-i -o -d -c --input --output",
        clusters=False,
    ),
    program(
        "create-react-app create-next-app create-vite degit cookiecutter",
        rule("", "path:last|here", "npx create-react-app web => path:/w/web"),
        takes="--template -t -o",
    ),
    program(
        "npm-check-updates ncu",
        rule("", "path:here", "ncu -u => path:/w", when="-u --upgrade"),
        rule("", "", "ncu =>", tree=TAKES),
    ),
    program(
        "wasm-pack trunk buf sqlc swag mockgen graphql-codegen autoreconf",
        rule("lint breaking ls-files vet diff", "", "buf lint =>", tree=TAKES),
        rule("serve watch", "unknown:tool", "trunk serve => unknown:trunk"),
        rule("push", "remote:tool", "buf push => remote:buf"),
        rule("", "path:-o,-d,--out-dir,--output,-destination|here", "buf generate -o out => path:/w/out"),
        takes="-o -d --out-dir --output -destination -source --template",
        clusters=False,
    ),
    program(
        "sqlx diesel",
        rule("migrate_info migration_list", "", "sqlx migrate info =>"),
        rule("migrate_add migration_generate create print-schema", "path:here", "sqlx migrate add a => path:/w"),
        rule("", "database:tool", "sqlx migrate run => database:sqlx"),
        takes="--source --database-url -D",
    ),
    program(
        "dbt airflow",
        rule("ls list debug parse version dags_list tasks_list info", "", "dbt ls =>", tree=TAKES),
        rule("deps clean docs_generate compile init", "path:here", "dbt deps => path:/w"),
        rule("", "database:tool unknown:tool", "dbt run => database:dbt unknown:dbt", asks=has_operands),
    ),
    program("shadcn", rule("add init", "packages:tool", "npx shadcn add a => packages:shadcn")),
    program(
        "husky lint-staged changeset",
        rule("publish", "remote:=npm", "changeset publish => remote:npm"),
        rule("status", "", "changeset status =>"),
        rule("", "git:here unknown:tool", "npx lint-staged => git:/w unknown:lint-staged"),
    ),
    program(
        "drizzle-kit",
        rule("push migrate drop", "database:tool", "drizzle-kit push => database:drizzle-kit", tree=TAKES),
        rule("generate introspect pull up", "path:here", "drizzle-kit generate => path:/w"),
        rule("check", "", "drizzle-kit check =>"),
    ),
    program(
        "flask",
        rule("routes db_current db_history db_heads db_show", "", "flask routes =>"),
        rule("db_migrate db_revision db_init", "path:here", "flask db migrate => path:/w"),
        rule("db", "database:tool", "flask db upgrade => database:flask", tree=TAKES),
        takes="-A --app",
    ),
    program(
        "pyinstaller build ./configure", rule("", "path:here unknown:tool", "python -m build => path:/w unknown:build")
    ),
    program(
        "meson",
        rule("introspect", "", "meson introspect out =>"),
        rule("setup", "path:first unknown:tool", "meson setup out => path:/w/out unknown:meson"),
        rule("compile install", "path:-C|here unknown:tool", "meson compile -C out => path:/w/out unknown:meson"),
        takes="-C",
    ),
    program(
        "sam serverless sls eas",
        rule("list logs info validate whoami print", "", "sam validate =>"),
        rule("deploy delete remove submit update sync", "remote:tool", "serverless deploy => remote:serverless"),
        rule("build package init create", "path:here unknown:tool", "sam build => path:/w unknown:sam"),
        tree=TAKES,
    ),
    program(
        "ollama huggingface-cli hf dvc",
        rule("list ls show ps status whoami diff scan-cache", "", "ollama list =>"),
        rule("push upload", "remote:tool", "dvc push => remote:dvc"),
        rule("download pull", "path:--local-dir|here", "hf download a --local-dir m => path:/w/m", when="--local-dir"),
        rule("pull rm create cp download add checkout", "packages:tool", "ollama pull a => packages:ollama"),
        takes="--local-dir",
    ),
    program(
        "jest vitest",
        rule(
            "",
            "path:here unknown:tool",
            "npx jest -u => path:/w unknown:jest",
            "npx jest => unknown:jest",
            when="-u --update --updateSnapshot",
        ),
    ),
    program(
        "playwright",
        rule("install install-deps uninstall", "packages:tool", "npx playwright install => packages:playwright"),
        rule("test", "path:here unknown:tool", "playwright test -u => path:/w unknown:playwright", when="-u"),
        rule(
            "test",
            "path:here unknown:tool",
            "playwright test --update-snapshots => path:/w unknown:playwright",
            when="--update-snapshots",
        ),
    ),
    program(
        "jupyter papermill",
        rule("kernelspec_list notebook_list server_list", "", "jupyter kernelspec list =>"),
        rule("nbconvert", "", "jupyter nbconvert --stdout --to script a.ipynb =>", when="--stdout", unless="--execute"),
        rule("nbconvert", "path:here unknown:tool", "jupyter nbconvert --to html a => path:/w unknown:jupyter"),
        takes="--to --output",
    ),
    program(
        "ansible-playbook",
        rule(
            "",
            "",
            "ansible-playbook --check site.yml =>",
            when="-C --check --syntax-check --list-tasks --list-hosts --list-tags",
        ),
        rule(
            "",
            "remote:-i,--inventory|=ansible unknown:tool",
            "ansible-playbook site.yml => remote:ansible unknown:ansible-playbook",
            asks=has_operands,
        ),
        takes="-i -e -l -t -u -f --inventory --limit --tags --extra-vars",
    ),
    program(
        "supabase",
        rule("status projects_list migration_list db_diff db_lint db_dump gen inspect", "", "supabase status =>"),
        rule(
            "db_push db_reset migration_up seed", "database:tool", "supabase db push => database:supabase", tree=TAKES
        ),
        rule("init migration_new db_pull functions_new", "path:here", "supabase migration new a => path:/w"),
        rule("start stop", "container:tool", "supabase start => container:supabase"),
        rule("functions_deploy link secrets_set db_remote", "remote:tool", "supabase link => remote:supabase"),
    ),
    program(
        "code codium",
        rule("", "packages:tool", "code --install-extension a => packages:code", when="--install-extension"),
        rule("", "packages:tool", "code --uninstall-extension a => packages:code", when="--uninstall-extension"),
        rule("", "", "code --list-extensions =>", when="--list-extensions -v -s --status"),
    ),
    program(
        "adb xcrun",
        rule("devices logcat get-state simctl_list version", "", "adb devices =>"),
        rule("pull", "path:rest|here", "adb pull /sdcard/a b => path:/w/b"),
        rule(
            "install uninstall push reboot root remount sync simctl",
            "remote:tool",
            "adb install a.apk => remote:adb",
        ),
        takes="-s -t",
    ),
    program(
        "ssh-add",
        rule("", "", "ssh-add -l =>", when="-l -L"),
        rule("", "service:=ssh-agent", "ssh-add => service:ssh-agent"),
    ),
    # The files are named in the patch, as seen from where it runs.
    program("apply_patch applypatch", rule("", "path:here", "apply_patch < a.patch => path:/w")),
)
