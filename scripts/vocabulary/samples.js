/** Text that a repository lacks: other scripts, emoji, terminal output, logs and replies of agents, so that tokens for them exist too. */

const sentences = [
  'Der Befehl läuft noch; prüfe die Ausgabe und öffne die größere Datei.',
  'Le fichier n’est pas trouvé, vérifiez le répertoire où la tâche a été exécutée.',
  'El archivo está vacío y la contraseña señalada ya no sirve; mañana habrá más.',
  'A tarefa não terminou, então a função será executada outra vez amanhã.',
  'Polecenie zakończyło się błędem, więc sprawdź dziennik i spróbuj później.',
  'Команда завершилась с ошибкой, проверьте журнал и повторите попытку позже.',
  'Η εντολή ολοκληρώθηκε και το αρχείο βρίσκεται στον φάκελο εργασίας.',
  '命令已经完成，请检查输出文件和目录，然后继续下一步。',
  'コマンドは終了しました。出力とファイルを確認してから、次の手順に進みます。',
  '명령이 끝났습니다. 출력과 파일을 확인한 다음 계속하십시오.',
  'انتهى الأمر، تحقق من الملف والمجلد قبل أن تتابع.',
  'הפקודה הסתיימה, בדוק את הקובץ ואת התיקייה לפני שתמשיך.',
  'आदेश पूरा हुआ, कृपया फ़ाइल और फ़ोल्डर की जाँच करें और आगे बढ़ें।',
  'คำสั่งเสร็จสิ้นแล้ว โปรดตรวจสอบไฟล์และโฟลเดอร์ก่อนดำเนินการต่อ',
];

const emoji = [
  '😀 😂 🙂 🤔 👍 👍🏽 🙏 🎉 🔥 ✅ ❌ ⚠️ 🚀 💡 📁 📝 🔧 🐍 🦀 ❤️',
  '👩‍💻 👨‍👩‍👧‍👦 🏳️‍🌈 🇩🇪 🇯🇵 🇧🇷 ☕ ⭐ ✨ → ← ↑ ↓ ✓ ✗ • … — –',
];

const terminal = [
  'root@sandbox:/app# ls -la\r\ntotal 12\r\ndrwxr-xr-x 2 root root 4096 Jan  1 00:00 .\r\n-rw-r--r-- 1 root root  120 Jan  1 00:00 main.py\r\n',
  'user@host:~$ python3 -m pytest -q tests/\r\n....F.                                    [100%]\r\n1 failed, 5 passed in 0.12s\r\n',
  '$ git status\nOn branch main\nnothing to commit, working tree clean\n$ cat /etc/hostname\n',
  '┌──────┬──────┐\n│ name │ size │\n├──────┼──────┤\n│ a    │ 1    │\n└──────┴──────┘\n',
  'Traceback (most recent call last):\n  File "/app/main.py", line 3, in <module>\nValueError: invalid literal for int() with base 10\n',
  'bash: foo: command not found\nPermission denied\nNo such file or directory\n',
];

const replies = [
  '{\n  "analysis": "The terminal shows an empty folder.",\n  "plan": "I list the files, then I write the program.",\n  "commands": [\n    {"keystrokes": "ls -la\\n", "duration": 0.1},\n    {"keystrokes": "cat > main.py << \'EOF\'\\n", "duration": 0.5}\n  ],\n  "task_complete": false\n}\n',
  '<response>\n<analysis>The tests pass now.</analysis>\n<plan>Nothing is left to do.</plan>\n<commands>\n<keystrokes duration="0.1">ls\n</keystrokes>\n</commands>\n<task_complete>true</task_complete>\n</response>\n',
  '<think>\nLet me think about what the user asked for. First I should check the output, then decide.\n</think>\n\n',
  '<tool_call>\n{"name": "run", "arguments": {"command": "ls"}}\n</tool_call>',
];

/** Each several times: what occurs once is learned by no merge. */
const repeat = 4;

export const samples = [...sentences, ...emoji, ...terminal, ...replies].flatMap((sample) =>
  Array.from({ length: repeat }, () => sample),
);
